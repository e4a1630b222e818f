// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation
internal import Harness

/// The program; see `hit --help`.
@main
enum Program {
    /// Not asynchronous, because this program is also started under callgrind, which does not survive the exit of the thread
    /// that an asynchronous `main` leaves.
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        do {
            if try CountedHits.run(words) { exit(0) }
        } catch {
            say("\(error)")
            exit(1)
        }
        // Before any other thread exists, so that all are counted.
        let counter = InstructionCounter()
        Task { exit(await run(words, counter)) }
        dispatchMain()
    }

    /// Does not run on the main thread, whose queue would add a hop to every measured suspension.
    @concurrent
    private static func run(_ words: [String], _ counter: InstructionCounter?) async -> Int32 {
        do {
            let options = try CommandOptions(parsing: words, numberOptions: Plan.numberOptions)
            if options.wantsHelp {
                print(Usage.text, terminator: "")
                return 0
            }
            try options.check(cases: Usage.cases, subjects: Usage.subjects)
            return try await measure(options, counter)
        } catch let misuse as CommandOptions.Misuse {
            say("\(misuse)")
            return CommandOptions.Misuse.exitStatus
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func measure(_ options: CommandOptions, _ counter: InstructionCounter?) async throws -> Int32 {
        let watch = Stopwatch()
        let plan = Plan(isQuick: options.isQuick, numbers: options.numbers)
        let scratch = try ScratchDirectory(in: options.directory, prefix: "holdfast-hit")
        let interruption = Interruption { scratch.remove() }
        defer {
            interruption.end()
            scratch.remove()
        }
        var runs = HitRuns(plan, options, scratch, counter, watch)
        let report = try await runs.run()
        let text =
            options.wantsJSON
            ? report.json + "\n"
            : report.table(
                comparedWith: ["dictionary", "raw", "urlcache"],
                companions: ["instructions", "allocations"]
            ) + "\n" + Usage.accounts
        FileHandle.standardOutput.write(Data(text.utf8))
        if options.wantsJSON { report.notes.forEach { say("note: \($0)") } }
        for finding in runs.findings { say(finding) }
        say("\(Int(watch.seconds.rounded())) seconds")
        return runs.findings.isEmpty ? 0 : 1
    }

    /// A message for people, separate from the figures.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("hit: \(text)\n".utf8))
    }
}
