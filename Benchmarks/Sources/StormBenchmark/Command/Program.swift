// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// The program; see `storm --help`.
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
                wordOptions: Plan.wordOptions,
                flagOptions: Plan.flagOptions
            )
            if options.wantsHelp {
                print(Usage.text, terminator: "")
                return 0
            }
            let plan = try Plan(options)
            if plan.isContention { return try await contend(plan, options) }
            return try await storm(plan, options)
        } catch let misuse as CommandOptions.Misuse {
            say("\(misuse)")
            return CommandOptions.Misuse.exitStatus
        } catch let error as ScenarioFileError {
            say(error.description)
            return noInput
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func storm(_ plan: Plan, _ options: CommandOptions) async throws -> Int32 {
        let watch = Stopwatch()
        let figures = StormTables(plan: plan, runs: try await StormRuns.run(plan))
        write(options.wantsJSON ? figures.report.json + "\n" : figures.text)
        if let path = plan.plot, let plot = figures.plot {
            try Data(plot.svg.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
            say("\(path): load and success over time")
        }
        if figures.runs.isCut {
            say("note: the time was over before everything was run; leave out --quick, or select less")
        }
        for finding in figures.findings { say(finding) }
        say("\(Int(watch.seconds.rounded())) seconds")
        return figures.findings.isEmpty ? 0 : 1
    }

    private static func contend(_ plan: Plan, _ options: CommandOptions) async throws -> Int32 {
        let table = await ContentionTable.run(trials: plan.trials, width: plan.width)
        write(options.wantsJSON ? table.report.json + "\n" : table.text)
        return 0
    }

    private static func write(_ text: String) {
        FileHandle.standardOutput.write(Data(text.utf8))
    }

    /// A message for people, separate from the figures.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("storm: \(text)\n".utf8))
    }
}
