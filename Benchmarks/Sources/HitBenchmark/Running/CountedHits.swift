// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Harness

/// The cases for counting instructions in a separate process: all that need one thread, no file and few resources.
enum CountedHits {
    static let subjects = ["holdfast", "dictionary"]

    static var cases: [HitCase] {
        HitCase.all.filter { $0.tier == .memory && $0.threads == 1 && $0.kind.entries == nil }
    }
    static var stages: [Stage] { Stage.allCases.filter { !$0.isOnDisk } }

    /// The arguments of such a process.
    static func words(_ plan: Plan) -> [String] { [Counting.word, "\(plan.entries)"] }

    /// Whether these are the arguments of such a process; if so, does its work and prints the results.
    static func run(_ words: [String]) throws -> Bool {
        guard words.count == 2, words[0] == Counting.word, let entries = Int(words[1]) else { return false }
        let options = try CommandOptions(parsing: ["--subject", subjects.joined(separator: ",")])
        let plan = Plan(isQuick: true, numbers: ["entries": entries])
        try Counting.child(calls: 200) { line in
            var contests: [Contest] = []
            for length in HitCase.lengths {
                let bed = try await Bed(plan, options, .memory, length, directory: "", line: line)
                contests += cases.filter { $0.length == length }.flatMap { bed.contests($0) }
            }
            for stage in stages {
                let subject = try await StageSubject(stage, directory: "", count: plan.entries)
                contests.append(Contest(stage.name, "holdfast") { _, places in try await subject.ask(places) })
            }
            return contests
        }
        return true
    }
}
