// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastSimulation

/// The program; see `hitrate --help`.
@main
enum Program {
    /// EX_NOINPUT from sysexits.
    private static let noInput: Int32 = 66

    static func main() async {
        exit(await run(Array(CommandLine.arguments.dropFirst())))
    }

    @concurrent
    private static func run(_ words: [String]) async -> Int32 {
        do {
            let options = try CommandOptions(
                parsing: words,
                numberOptions: Plan.numberOptions,
                wordOptions: Plan.wordOptions
            )
            if options.wantsHelp {
                print(Usage.text, terminator: "")
                return 0
            }
            return try await replay(try Plan(options), options)
        } catch let misuse as CommandOptions.Misuse {
            say("\(misuse)")
            return CommandOptions.Misuse.exitStatus
        } catch let error as TraceError {
            say(error.description)
            return noInput
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func replay(_ plan: Plan, _ options: CommandOptions) async throws -> Int32 {
        let watch = Stopwatch()
        let sources = TraceSource.all(plan)
        // Opened before the first replay, so that a wrong name is not reported only after minutes.
        for path in plan.traces { _ = try TraceSource(path: path).trace(seed: plan.seed, limit: 1) }
        if plan.traces.isEmpty {
            say(
                "no --trace: using a generated trace by Zipf's law with seed \(plan.seed); your own requests will differ."
            )
        }
        var all: [Replays] = []
        for source in sources {
            let trace = try source.trace(seed: plan.seed, limit: plan.limit)
            all.append(await Replays.run(source.name, trace, rate: source.rate, plan, watch))
        }
        let figures = HitRateFigures(plan: plan, replays: all)
        let text = options.wantsJSON ? figures.report.json + "\n" : figures.text
        FileHandle.standardOutput.write(Data(text.utf8))
        if let path = plan.plot {
            try Data(figures.plot.svg.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
            say("\(path): the miss-ratio curves")
        }
        if let limit = plan.limit, all.contains(where: { $0.requests == limit }) {
            say("note: at most the first \(limit) requests of each trace")
        }
        if figures.isCut {
            say("note: the time was over before everything was replayed; leave out --quick, or some policies")
        }
        return 0
    }

    /// A message for people, separate from the figures.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("hitrate: \(text)\n".utf8))
    }
}
