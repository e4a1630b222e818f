// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Dispatch
internal import Foundation
internal import Harness

/// The program; see `overhead --help`.
@main
enum Program {
    /// Not asynchronous, because this program is also started under callgrind, which does not survive the exit of the thread
    /// that an asynchronous `main` leaves.
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        if words == [Counting.word] {
            do {
                try Counting.child(calls: 500) { _ in OverheadCase.all.flatMap { $0.contests() } }
                exit(0)
            } catch {
                say("\(error)")
                exit(1)
            }
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
            let options = try CommandOptions(parsing: words, numberOptions: ["rounds", "turn-milliseconds"])
            if options.wantsHelp {
                print(Usage.text, terminator: "")
                return 0
            }
            try options.check(cases: OverheadCase.all.map(\.name), subjects: OverheadCase.subjects)
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
        var contests = OverheadCase.all.filter { options.includes(case: $0.name) }.flatMap { $0.contests() }
        contests.removeAll { !options.includes(subject: $0.subject) }
        let turn = UInt64(max(1, options.numbers["turn-milliseconds"] ?? (options.isQuick ? 40 : 100))) * 1_000_000
        let rounds = max(1, options.numbers["rounds"] ?? (options.isQuick ? 7 : 15))
        // The turns alternate, so that a busy moment affects all cases; the first round is a warm-up.
        for (round, order) in Rounds.orders(subjects: contests.count, rounds: rounds + 1).enumerated() {
            for index in order { try await contests[index].turn(turn, counter, isCounted: round > 0) }
        }
        var report = Report()
        var counts: [String: Double] = [:]
        if counter == nil {
            say("instructions, by callgrind")
            do throws(CallgrindRun.Failure) {
                counts = try CallgrindRun.instructions([Counting.word], within: options.isQuick ? 30 : 120)
                report.note("Instructions were counted by callgrind, because this system has no accessible counter.")
            } catch {
                report.note(
                    "Instructions were not counted: this system has no accessible counter, and \(error.reason)."
                )
            }
        }
        for index in contests.indices {
            try await contests[index].countAllocations()
            contests[index].add(to: &report, counts: counts)
        }
        let text =
            options.wantsJSON
            ? report.json + "\n"
            : report.table(comparedWith: ["direct"], companions: ["instructions", "allocations"]) + "\n"
                + Usage.accounts
        FileHandle.standardOutput.write(Data(text.utf8))
        if options.wantsJSON { report.notes.forEach { say("note: \($0)") } }
        let findings = contests.compactMap(\.finding)
        for finding in findings { say(finding) }
        say("\(Int(watch.seconds.rounded())) seconds")
        return findings.isEmpty ? 0 : 1
    }

    private static func say(_ text: String) {
        FileHandle.standardError.write(Data("overhead: \(text)\n".utf8))
    }
}
