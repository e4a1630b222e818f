// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// The program; see `scale --help`.
@main
enum Program {
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
            let plan = Plan(isQuick: options.isQuick, numbers: options.numbers)
            let cases = ScaleCase.all(threadEntries: plan.threadEntries)
            try options.check(cases: cases.map(\.name), subjects: SubjectKind.allCases.map(\.rawValue))
            return try await measure(plan, options, cases.filter { options.includes(case: $0.name) })
        } catch let misuse as CommandOptions.Misuse {
            say("\(misuse)")
            return CommandOptions.Misuse.exitStatus
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func measure(_ plan: Plan, _ options: CommandOptions, _ cases: [ScaleCase]) async throws -> Int32 {
        let watch = Stopwatch()
        let kinds = SubjectKind.allCases.filter { options.includes(subject: $0.rawValue) }
        var runs = ScaleRuns(plan, kinds, watch)
        let report = try await runs.run(cases)
        let charts = ScaleCharts(report, cases, kinds).charts
        let text =
            options.wantsJSON
            ? report.json + "\n"
            : report.table(comparedWith: ["dictionary"]) + "\n" + charts.map { $0.text + "\n" }.joined()
                + Usage.accounts
        FileHandle.standardOutput.write(Data(text.utf8))
        if options.wantsJSON { report.notes.forEach { say("note: \($0)") } }
        for path in options.words["plot"] ?? [] {
            do {
                try Data(ChartPicture(charts).svg.utf8).write(to: URL(fileURLWithPath: path))
            } catch {
                runs.findings.append("Cannot write \(path) (\(error)). Choose another path with --plot.")
            }
        }
        for finding in runs.findings { say(finding) }
        say("\(Int(watch.seconds.rounded())) seconds")
        return runs.findings.isEmpty ? 0 : 1
    }

    /// A message for people, separate from the figures.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("scale: \(text)\n".utf8))
    }
}
