// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// All cases and subjects, taking turns, and what was measured of them.
struct Turns {
    private struct Contest {
        let hitCase: HitCase
        let subject: any Subject
        /// Nanoseconds by hits, of all threads together.
        var figures: [Double] = []
        var hits = 0
        var allocations = 0
    }

    private let population: Population
    private let hits: Int
    private var contests: [Contest]
    private let leftOut: Bool
    private(set) var findings: [String] = []

    /// Every subject in every case that has a processor for each of its threads.
    init(population: Population, subjects: [any Subject], cases: [HitCase], hits: Int) {
        self.population = population
        self.hits = hits
        let processors = ProcessInfo.processInfo.activeProcessorCount
        leftOut = cases.contains { $0.threads > processors }
        contests = cases.filter { $0.threads <= processors }.flatMap { hitCase in
            subjects.map { Contest(hitCase: hitCase, subject: $0) }
        }
    }

    /// Takes the turns; one round before them warms up and is not counted.
    mutating func run(rounds: Int) async throws {
        let orders = Rounds.orders(subjects: contests.count, rounds: rounds + 1)
        for (round, order) in orders.enumerated() {
            for index in order { try await turn(index, round: round) }
        }
    }

    private mutating func turn(_ index: Int, round: Int) async throws {
        let contest = contests[index]
        let population = population
        let orders = (0..<contest.hitCase.threads).map { thread in
            population.order(hits, isUniform: contest.hitCase.isUniform, seed: UInt64(round * 16 + thread))
        }
        // Each call makes its key itself; one object for all threads would make them wait for each other.
        let populations = orders.map { _ in contest.hitCase.isUniform ? population : population.firstAlone }
        let before = Program.allocations
        let watch = Stopwatch()
        let right = try await withThrowingTaskGroup(of: Int.self) { group in
            for (population, order) in zip(populations, orders) {
                group.addTask { try await contest.subject.ask(population, order) }
            }
            return try await group.reduce(0, +)
        }
        let seconds = watch.seconds
        let all = hits * orders.count
        if right != all {
            findings.append(
                "\(contest.subject.name), \(contest.hitCase.name): \(all - right) hits of \(all) went wrong."
            )
        }
        guard round > 0 else { return }
        contests[index].figures.append(seconds * 1e9 / Double(all))
        contests[index].hits += all
        if let before, let after = Program.allocations { contests[index].allocations += after - before }
    }

    /// The figures, with what of them the options ask for.
    func report(_ options: CommandOptions) -> Report {
        var report = Report()
        for contest in contests where options.includes(case: contest.hitCase.name) {
            let sample = Sample(contest.figures)
            report.add(Figure(contest.hitCase.name, contest.subject.name, sample, "ns"))
        }
        var names: [String] = []
        for contest in contests where !names.contains(contest.subject.name) { names.append(contest.subject.name) }
        if options.includes(case: HitCase.allocations), Program.allocations != nil {
            for name in names {
                let own = contests.filter { $0.subject.name == name }
                let count = Double(own.reduce(0) { $0 + $1.allocations })
                let hits = Double(max(1, own.reduce(0) { $0 + $1.hits }))
                // A turn allocates some blocks for its tasks; a hit none, or one at least.
                report.add(Figure(HitCase.allocations, name, (count / hits * 100).rounded() / 100, "blocks/hit"))
            }
        }
        for name in names {
            for kind in ["uniform-1KiB", "hot-1KiB"] {
                guard let ratio = scaling(report, kind, name) else { continue }
                report.note("\(kind): two threads of \(name) do \((ratio * 100).rounded() / 100) times what one does.")
            }
        }
        if leftOut { report.note("Cases of two threads were left out: this machine has one processor.") }
        return report
    }

    private func scaling(_ report: Report, _ kind: String, _ subject: String) -> Double? {
        guard let one = report.value("\(kind)@1", subject), let two = report.value("\(kind)@2", subject) else {
            return nil
        }
        return one / two
    }
}
