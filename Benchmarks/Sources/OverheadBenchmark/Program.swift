// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CAllocationCount
internal import Foundation
internal import Harness

/// The program: `overhead --help` says what it does.
@main
enum Program {
    static func main() async {
        exit(await run(Array(CommandLine.arguments.dropFirst())))
    }

    /// Runs off the main thread, whose queue would add a hop to every suspension that is measured.
    @concurrent
    private static func run(_ words: [String]) async -> Int32 {
        do {
            let options = try CommandOptions(parsing: words, numberOptions: ["rounds", "calls"])
            if options.wantsHelp {
                print(usage, terminator: "")
                return 0
            }
            try options.check(cases: OverheadCase.all.map(\.name), subjects: ["holdfast"])
            return try await measure(options)
        } catch let misuse as CommandOptions.Misuse {
            say("\(misuse)")
            return CommandOptions.Misuse.exitStatus
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func measure(_ options: CommandOptions) async throws -> Int32 {
        let cases = OverheadCase.all.filter { options.includes(case: $0.name) }
        let calls = max(1, options.numbers["calls"] ?? (options.isQuick ? 50_000 : 200_000))
        let rounds = max(1, options.numbers["rounds"] ?? (options.isQuick ? 7 : 15))
        holdfast_count_allocations(1)
        var times = cases.map { _ in [Double]() }
        var allocations = cases.map { _ in [Double]() }
        // The turns alternate, so that a busy moment meets all cases; the first round warms up.
        for (round, order) in Rounds.orders(subjects: cases.count, rounds: rounds + 1).enumerated() {
            for index in order {
                let before = holdfast_allocation_count()
                let watch = Stopwatch()
                let right = try await cases[index].make(calls)
                let seconds = watch.seconds
                guard right == calls else {
                    say("\(cases[index].name): \(calls - right) calls of \(calls) were answered wrong.")
                    return 1
                }
                guard round > 0 else { continue }
                times[index].append(seconds * 1e9 / Double(calls))
                if before >= 0 {
                    allocations[index].append(Double(holdfast_allocation_count() - before) / Double(calls))
                }
            }
        }
        var report = Report()
        for (index, overhead) in cases.enumerated() {
            report.add(Figure(overhead.name, "holdfast", Sample(times[index]), "ns"))
            if !allocations[index].isEmpty {
                let sample = Sample(allocations[index])
                report.add(Figure("\(overhead.name)-allocations", "holdfast", sample, "allocations"))
            }
        }
        let text = options.wantsJSON ? report.json + "\n" : report.table(comparedWith: [])
        FileHandle.standardOutput.write(Data(text.utf8))
        return 0
    }

    private static func say(_ text: String) {
        FileHandle.standardError.write(Data("overhead: \(text)\n".utf8))
    }

    private static let usage = """
        usage: overhead [--quick] [--json] [--case NAMES] [options]

        Measures what a pipeline adds to a call that succeeds at once, over a transport that answers immediately: nanoseconds
        and allocations by calls, with and without a retrier and a deadline.

          --quick            less of everything; ends within 45 seconds
          --json             one JSON object in place of the table
          --case NAMES       \(OverheadCase.all.map(\.name).joined(separator: ", "))
          --rounds N         turns of each case (15; quick: 7)
          --calls N          calls of a turn (200000; quick: 50000)
          --help             this text

        Exit status: 0, 1 when a call was answered wrong, 64 for bad arguments.

        """
}
