// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// Runs the cases, grouped by the number of entries. All subjects are filled first, then take turns.
struct ScaleRuns {
    private struct Contest {
        let scaleCase: ScaleCase
        let subject: any Subject
        var figures: [Double] = []
    }

    /// What went wrong.
    var findings: [String] = []
    private let plan: Plan
    private let kinds: [SubjectKind]
    private let watch: Stopwatch
    private let crew: ThreadCrew
    private var report = Report()
    private var appetites: [ScaleCase.Face: Appetite] = [:]

    init(_ plan: Plan, _ kinds: [SubjectKind], _ watch: Stopwatch) {
        (self.plan, self.kinds, self.watch) = (plan, kinds, watch)
        crew = ThreadCrew(ScaleCase.threadCounts.max() ?? 1)
    }

    /// Measures the cases, beginning with those with few entries.
    mutating func run(_ cases: [ScaleCase]) async throws -> Report {
        if cases.contains(where: { $0.face == .lookUp }) {
            _ = try await filled(.lookUp, plan.probeEntries)
            ProcessCounters.returnFreedMemory()
        }
        for face in [ScaleCase.Face.lookUp, .send] {
            let own = cases.filter { $0.face == face }
            for entries in Set(own.map(\.entries)).sorted() {
                try await run(own.filter { $0.entries == entries }, face, entries)
                ProcessCounters.returnFreedMemory()
            }
        }
        let processors = ProcessInfo.processInfo.activeProcessorCount
        report.note(
            "This machine has \(processors) processor\(processors == 1 ? "" : "s"): "
                + "more threads than that share them and do no more work."
        )
        return report
    }

    private mutating func run(_ cases: [ScaleCase], _ face: ScaleCase.Face, _ entries: Int) async throws {
        let refusal = appetites[face]?.refusal(
            entries: entries,
            available: MachineMemory.available,
            left: plan.totalSeconds - watch.seconds
        )
        if let refusal {
            for scaleCase in cases {
                for kind in kinds where kind.hasFace(face) {
                    report.add(Figure(scaleCase.name, kind.rawValue, skipped: refusal, "ns"))
                }
            }
            return
        }
        let size = (face == .send ? "send-" : "") + ScaleCase.sizeName(entries)
        Program.say("\(size) entries")
        let (subjects, bytes) = try await filled(face, entries)
        var contests = cases.flatMap { scaleCase in subjects.map { Contest(scaleCase: scaleCase, subject: $0) } }
        // The first round is a warm-up.
        for (round, order) in Rounds.orders(subjects: contests.count, rounds: plan.rounds + 1).enumerated() {
            for place in order {
                let figure = try await turn(contests[place], round)
                if round > 0 { contests[place].figures.append(figure) }
            }
        }
        for contest in contests {
            report.add(Figure(contest.scaleCase.name, contest.subject.name, Sample(contest.figures), "ns"))
        }
        for (subject, bytes) in zip(subjects, bytes) {
            report.add(bytes.map { Figure("memory-of-an-entry-\(size)", subject.name, $0, "bytes") })
        }
    }

    /// Nanoseconds per hit in one turn.
    private mutating func turn(_ contest: Contest, _ round: Int) async throws -> Double {
        let (scaleCase, subject) = (contest.scaleCase, contest.subject)
        let hits = plan.hits(scaleCase.face)
        let askings = (0..<scaleCase.threads).map { thread in
            Asking(scaleCase, hits: hits, seed: UInt64(round * 16 + thread))
        }
        let (limit, slice) = (plan.turn, plan.slice)
        let (parts, nanoseconds) = try await crew.run(scaleCase.threads) { thread in
            let watch = Stopwatch()
            var (asked, right) = (0, 0)
            repeat {
                let places = asked..<min(hits, asked + slice)
                right += try await subject.ask(askings[thread], places)
                asked = places.upperBound
            } while asked < hits && watch.nanoseconds < limit
            return (asked: asked, right: right)
        }
        let asked = parts.reduce(0) { $0 + $1.asked }
        let missed = asked - parts.reduce(0) { $0 + $1.right }
        if missed > 0 { findings.append("\(subject.name), \(scaleCase.name): \(missed) of \(asked) hits were wrong.") }
        return Double(nanoseconds) / Double(asked)
    }

    /// Fills the subjects, and measures the cost of an entry.
    ///
    /// - Returns: the subjects, and the bytes of an entry in each; nil if the system does not report memory.
    private mutating func filled(
        _ face: ScaleCase.Face,
        _ entries: Int
    ) async throws -> (subjects: [any Subject], bytes: [Double?]) {
        var (subjects, bytes): ([any Subject], [Double?]) = ([], [])
        let begun = watch.seconds
        for kind in kinds where kind.hasFace(face) {
            let before = ProcessCounters.memory()?.anonymous
            subjects.append(try await kind.filled(face, entries: entries))
            let after = ProcessCounters.memory()?.anonymous
            bytes.append(before.flatMap { before in after.map { Double($0 - before) / Double(entries) } })
        }
        // If the system does not report memory: more than any subject used on other systems.
        let each = bytes.map { $0 ?? 1_500 }.reduce(0, +)
        appetites[face] = Appetite(bytes: each, seconds: (watch.seconds - begun) / Double(entries))
        return (subjects, bytes)
    }
}
