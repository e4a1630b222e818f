// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import Holdfast
internal import HoldfastStorage

/// The program: `quickstart --help` says what it does.
@main
enum Quickstart {
    /// How much the disk cache may hold.
    static let capacity = 64 << 20

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let work = Task { await run(arguments, on: .standard) }
        let interruption = Interruption { work.cancel() }
        let status = await work.value
        interruption.end()
        exit(status)
    }

    /// Does what the words after the program's name ask for.
    ///
    /// - Returns: the status to exit with. Whatever it is, a temporary directory is gone by then.
    static func run(
        _ words: [String],
        on console: Console,
        clock: any HoldfastClock = SystemClock()
    ) async -> Int32 {
        do {
            let arguments = try Arguments(parsing: words)
            if arguments.wantsHelp {
                console.output(Help.text + "\n")
                return 0
            }
            let report = Report(try await results(arguments, console, clock), arguments)
            console.output(arguments.isJSON ? try report.json() : report.text)
            return 0
        } catch {
            let failure = error as? CommandFailure ?? (error is CancellationError ? .interrupted : .failed(error))
            console.error("quickstart: \(failure)\n")
            return failure.exitStatus
        }
    }

    private static func results(
        _ arguments: Arguments,
        _ console: Console,
        _ clock: any HoldfastClock
    ) async throws -> [RunResult] {
        let target: any Target
        if arguments.urls.isEmpty {
            target = OriginTarget(
                resources: arguments.resources,
                failShare: arguments.failShare,
                seed: arguments.seed,
                clock: clock
            )
        } else {
            let network = NetworkTarget(urls: arguments.urls)
            try await network.probe(clock: clock)
            target = network
        }
        let directory = try CacheDirectory(in: arguments.directory)
        defer { directory.removeIfTemporary() }
        let scenario = Scenario(
            target: target,
            load: Load(
                count: arguments.calls,
                resources: arguments.urls.isEmpty ? arguments.resources : arguments.urls.count,
                seed: arguments.seed,
                beginsWithEach: !arguments.urls.isEmpty
            ),
            concurrency: arguments.concurrency,
            clock: clock,
            openStore: { try await directory.openStore(capacity: capacity, clock: clock) }
        )
        return try await scenario.run(on: console)
    }
}

/// Ends the program in good order at Control-C; a second one ends it at once.
private struct Interruption {
    private let sources: [any DispatchSourceSignal]

    init(_ action: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                signal(number, SIG_DFL)
                action()
            }
            source.resume()
            return source
        }
    }

    func end() {
        for source in sources { source.cancel() }
    }
}
