// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastStorage

/// The program; see `quickstart --help`.
@main
enum Quickstart {
    /// The capacity of the disk cache.
    static let capacity = 64 << 20

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let result = await Interruption.cancelling { await run(arguments, on: .standard) }
        exit((try? result.get()) ?? 1)
    }

    /// Runs the program with the words after its name.
    ///
    /// - Returns: the exit status. A temporary directory has been removed by then in any case.
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
            let report = Report(try await results(arguments, console: console, clock: clock), arguments: arguments)
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
        console: Console,
        clock: any HoldfastClock
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
