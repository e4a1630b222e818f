// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

/// The program; see `weather-example --help`.
@main
enum WeatherExample {
    static func main() async {
        exit(await run(Array(CommandLine.arguments.dropFirst()), on: .standard))
    }

    /// Runs the program with the words after its name.
    ///
    /// - Parameters:
    ///   - words: the command line without the program's name.
    ///   - console: where the report goes.
    ///   - program: the weather service, for runs without `--url`.
    /// - Returns: the exit status.
    static func run(_ words: [String], on console: Console, program: URL = ServiceProcess.program) async -> Int32 {
        do {
            let arguments = try Arguments(parsing: words)
            if arguments.wantsHelp {
                console.output(Help.text + "\n")
                return 0
            }
            let skipped = arguments.clients.filter { $0.missingTrait != nil }
            if arguments.namesClients, let first = skipped.first { throw CommandFailure.missing(first) }
            let results = try await results(arguments, program: program)
            let report = Report(results: results, skipped: skipped)
            console.output(arguments.isJSON ? try report.json() : report.text)
            return 0
        } catch {
            let failure = error as? CommandFailure ?? .service("the runs ended early: \(error)")
            console.error("weather-example: \(failure)\n")
            return failure.exitStatus
        }
    }

    private static func results(_ arguments: Arguments, program: URL) async throws -> [RunResult] {
        var service: ServiceProcess?
        defer { service?.stop() }
        let url: URL
        if let given = arguments.url {
            let text = given.absoluteString
            url = text.hasSuffix("/") ? URL(string: String(text.dropLast())) ?? given : given
        } else {
            let started = try await ServiceProcess.start(program, options: ["--delay-ms", "\(arguments.delay)"])
            service = started
            url = started.url
        }
        let pause = arguments.pause
        let dashboard = Dashboard(users: arguments.users, rounds: arguments.rounds) {
            try await ContinuousClock().sleep(for: pause)
        }
        var results: [RunResult] = []
        for kind in arguments.clients where kind.missingTrait == nil {
            for side in ClientRun.Side.allCases {
                results.append(try await ClientRun(kind: kind, side: side, url: url, dashboard: dashboard).perform())
            }
        }
        return results
    }
}
