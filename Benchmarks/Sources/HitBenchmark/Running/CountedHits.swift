// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Harness

/// What is asked where instructions are counted in a process of their own: all that needs one thread and no file.
enum CountedHits {
    static let subjects = ["holdfast", "dictionary"]

    static var cases: [HitCase] { HitCase.all.filter { $0.tier == .memory && $0.threads == 1 } }
    static var stages: [Stage] { Stage.allCases.filter { !$0.isOnDisk } }

    /// The words of such a process.
    static func words(_ plan: Plan) -> [String] { [Counting.word, "\(plan.entries)"] }

    /// Whether these are the words of such a process: then it does its work and prints what it needs to know.
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
