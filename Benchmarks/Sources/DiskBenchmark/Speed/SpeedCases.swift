// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// The put, get and mixed cases for each size. All subjects are set up first, then take turns.
struct SpeedCases {
    let plan: Plan
    let options: CommandOptions
    let scratch: ScratchDirectory
    /// Started when the program began.
    let watch: Stopwatch

    /// Measures the cases of one size that the options select.
    ///
    /// - Returns: findings about subjects that did less than they claim; their figures are left out.
    func run(_ size: Plan.Size, into report: inout Report) async throws -> [String] {
        let workload = Workload(size: size.bytes)
        var findings: [String] = []
        let reading = ["get", "mixed"].filter { options.includes(case: "\($0)-\(size.name)") }
        if !reading.isEmpty, hasTime("get and mixed at \(size.name)", &report) {
            findings += try await self.reading(size, workload, reading, &report)
        }
        if options.includes(case: "put-\(size.name)"), hasTime("put at \(size.name)", &report) {
            findings += try await writing(size, workload, &report)
        }
        return findings
    }

    /// Whether another case may begin; if not, adds a note to the report.
    func hasTime(_ name: String, _ report: inout Report) -> Bool {
        if watch.seconds < plan.totalSeconds { return true }
        report.note(
            "\(name) was skipped, because the other cases took too long on this machine. Leave out --quick, or select it with --case."
        )
        return false
    }

    private func reading(
        _ size: Plan.Size,
        _ workload: Workload,
        _ kinds: [String],
        _ report: inout Report
    ) async throws -> [String] {
        var contestants = try await contestants(for: kinds, size, workload, .reading)
        defer { scratch.dropLargeFiles() }
        var findings: [String] = []
        do {
            let all = Step.puts(workload, 0..<size.population)
            for contestant in contestants {
                let count = contestant.kind.isSlow ? size.slow : size.population
                try await contestant.subject.fill(Array(all.prefix(count)))
            }
            for kind in kinds {
                let name = "\(kind)-\(size.name)"
                Program.say(name)
                let begun = watch.seconds
                // The first turn is a warm-up and is not counted.
                for round in 0...plan.rounds where goesOn(round, since: begun) {
                    let seed = UInt64(round) &+ UInt64(size.bytes)
                    let make = { (population: Int) in
                        kind == "get"
                            ? Step.gets(workload, size.gets, population: population, seed: seed)
                            : Step.mixed(workload, size.gets / 4, population: population, seed: seed)
                    }
                    let (steps, few) = (make(size.population), make(size.slow))
                    try await turns(round, &contestants, kind) { $0.isSlow ? few : steps }
                }
                findings += finish(name, kind, workload, &contestants, &report)
            }
        } catch {
            for contestant in contestants { await contestant.subject.close() }
            throw error
        }
        for contestant in contestants { await contestant.subject.close() }
        return findings
    }

    private func writing(_ size: Plan.Size, _ workload: Workload, _ report: inout Report) async throws -> [String] {
        Program.say("put-\(size.name)")
        var contestants = try await contestants(for: ["put"], size, workload, .writing)
        defer { scratch.dropLargeFiles() }
        do {
            let begun = watch.seconds
            for round in 0...plan.rounds where goesOn(round, since: begun) {
                let steps = Step.puts(workload, (round * size.puts)..<((round + 1) * size.puts))
                let few = Array(steps.prefix(size.slow))
                try await turns(round, &contestants, "put") { $0.isSlow ? few : steps }
            }
        } catch {
            for contestant in contestants { await contestant.subject.close() }
            throw error
        }
        for contestant in contestants { await contestant.subject.close() }
        return finish("put-\(size.name)", "put", workload, &contestants, &report)
    }

    private func contestants(
        for kinds: [String],
        _ size: Plan.Size,
        _ workload: Workload,
        _ purpose: SubjectKind.Purpose
    ) async throws -> [Contestant] {
        let count = purpose == .reading ? size.population : (plan.rounds + 1) * size.puts
        var made: [Contestant] = []
        for kind in SubjectKind.all where options.includes(subject: kind.name) && !kind.kinds.isDisjoint(with: kinds) {
            let setting = SubjectKind.Setting(
                directory: scratch.path(of: "\(size.name)-\(kinds[0])-\(kind.name)"),
                workload: workload,
                purpose: purpose,
                plan: plan,
                volume: count * (workload.valueLength + 1_024)
            )
            made.append(Contestant(kind: kind, subject: try await kind.make(setting)))
        }
        return made
    }

    /// Whether a round should begin: the first three counted rounds always do, later ones only while the case has time left.
    private func goesOn(_ round: Int, since begun: Double) -> Bool {
        round <= 3 || watch.seconds - begun < plan.caseSeconds
    }

    /// Runs one turn of each participating subject, in this round's order.
    private func turns(
        _ round: Int,
        _ contestants: inout [Contestant],
        _ kind: String,
        _ steps: (SubjectKind) -> [Step]
    ) async throws {
        let count = contestants.count
        guard let order = Rounds.orders(subjects: count, rounds: round + 1).last else { return }
        for place in order where contestants[place].kind.kinds.contains(kind) {
            try await contestants[place].turn(steps(contestants[place].kind), limit: plan.turn, isCounted: round > 0)
        }
    }

    private func finish(
        _ name: String,
        _ kind: String,
        _ workload: Workload,
        _ contestants: inout [Contestant],
        _ report: inout Report
    ) -> [String] {
        var findings: [String] = []
        var processor: [Figure?] = []
        for place in contestants.indices where contestants[place].kind.kinds.contains(kind) {
            let contestant = contestants[place]
            if let finding = contestant.tally.finding(
                name: "\(contestant.kind.name) in \(name)",
                size: workload.size,
                readsByCalls: contestant.kind.readsByCalls
            ) {
                findings.append(finding)
            } else {
                report.add(Figure(name, contestant.kind.name, Sample(contestant.figures), "ns"))
                processor.append(Figure("\(name)-cpu", contestant.kind.name, Sample(contestant.processorFigures), "ns"))
            }
            if contestant.kind.isSlow {
                report.note(
                    "\(contestant.kind.name) holds at most \(plan.sizes.map(\.slow).max() ?? 0) entries, because each of its calls is slow."
                )
            }
            if !contestant.kind.readsByCalls {
                report.note(
                    "\(contestant.kind.name) reads a mapped file, which the counters of read calls do not show."
                )
            }
            contestants[place].figures = []
            contestants[place].processorFigures = []
            contestants[place].tally = TransferTally()
        }
        for figure in processor { report.add(figure) }
        if ProcessCounters.transfer() == nil {
            report.note(
                "This system does not count the bytes of read and write calls, so the transfers were not checked."
            )
        }
        return findings
    }
}
