// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Foundation
internal import Harness

/// Runs all cases of each tier and length, then the stages. Within each, all subjects are set up first, then take turns.
struct HitRuns {
    let plan: Plan
    let options: CommandOptions
    let scratch: ScratchDirectory
    let counter: InstructionCounter?
    /// Started when Python's caches were ready.
    private var watch: Stopwatch
    private var finished: [Contest] = []
    private(set) var findings: [String] = []
    private var peers: PythonPeers?
    private var missingPeers: String?

    init(
        _ plan: Plan,
        _ options: CommandOptions,
        _ scratch: ScratchDirectory,
        _ counter: InstructionCounter?,
        _ watch: Stopwatch
    ) {
        (self.plan, self.options, self.scratch, self.counter, self.watch) = (plan, options, scratch, counter, watch)
    }

    /// Measures the cases that the options select.
    mutating func run() async throws -> Report {
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let cases = HitCase.all.filter {
            options.includes(case: $0.name) && $0.threads <= processors && !(options.isQuick && $0.isLong)
        }
        startPeers(cases)
        // Installing happens only once, and must not use up the time of the first run.
        watch = Stopwatch()
        defer { peers?.close() }
        for tier in HitCase.Tier.allCases {
            for length in HitCase.lengths {
                for entries in [nil, HitCase.Kind.uniform50k.entries, HitCase.Kind.uniform1M.entries] {
                    let own = cases.filter { $0.tier == tier && $0.length == length && $0.kind.entries == entries }
                    if !own.isEmpty { try await run(own, tier, length, entries: entries) }
                }
            }
        }
        try await runStages()
        var report = Report()
        let counts = countElsewhere(&report)
        for contest in finished {
            contest.add(to: &report, counts: counts)
            if let finding = contest.finding { findings.append(finding) }
        }
        if options.isQuick, HitCase.all.contains(where: { $0.isLong && options.includes(case: $0.name) }) {
            report.note("A quick run leaves out the cases with a million resources, which take a minute to fill.")
        }
        if processors < 2 {
            report.note("Cases with two threads were skipped, because this machine has one processor.")
        }
        if finished.contains(where: { $0.subject == "urlcache" && $0.isSlow }), plan.slowEntries < plan.entries {
            report.note("On the disk urlcache holds \(plan.slowEntries) entries, because each of its calls is slow.")
        }
        if let peers, !peers.versions.isEmpty {
            let names = peers.versions.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            report.note("Python's caches: \(names.joined(separator: ", ")).")
        }
        return report
    }

    // MARK: Python's caches

    private mutating func startPeers(_ cases: [HitCase]) {
        guard cases.contains(where: Self.suitsPeers), PythonPeers.names.contains(where: options.includes(subject:))
        else { return }
        do {
            Program.say("Python's caches: installing them if they are missing")
            let directory = scratch.path(of: "python")
            peers = try PythonPeers(directory: directory, installingWithin: plan.installSeconds)
        } catch {
            missingPeers = Self.reason(of: error)
        }
    }

    /// Python runs one thread at a time, and its caches have only one way to be called.
    private static func suitsPeers(_ hitCase: HitCase) -> Bool {
        hitCase.threads == 1 && hitCase.kind == .plain && !hitCase.asksData
    }

    private static func reason(of error: any Error) -> String {
        (error as? PeerInstallation.Failure)?.reason ?? "\(error)"
    }

    /// Runs a turn of one of Python's caches; if it fails, they are left out.
    private mutating func ask(_ contest: inout Contest, _ hitCase: HitCase, _ round: Int) {
        guard missingPeers == nil, let peers else {
            contest.skipped = missingPeers ?? "they were not started"
            return
        }
        do {
            let spent = try peers.turn(contest.subject, hitCase, nanoseconds: plan.turn, round: round)
            contest.note(spent, isCounted: round > 0)
        } catch {
            missingPeers = Self.reason(of: error)
            contest.skipped = missingPeers
        }
    }

    // MARK: Turns

    private mutating func run(
        _ cases: [HitCase],
        _ tier: HitCase.Tier,
        _ length: Int,
        entries: Int?
    ) async throws {
        Program.say("\(tier.rawValue), \(length >> 10) KiB\(entries.map { ", \($0) resources" } ?? "")")
        let bed = try await Bed(plan, options, tier, length, entries: entries, directory: scratch.path)
        if missingPeers == nil, let peers, cases.contains(where: Self.suitsPeers) {
            do {
                try peers.fill(tier, length: length, entries: plan.entries)
            } catch {
                missingPeers = Self.reason(of: error)
            }
        }
        for hitCase in cases {
            var contests = bed.contests(hitCase)
            if Self.suitsPeers(hitCase) {
                let names = PythonPeers.names.filter(options.includes(subject:))
                contests += names.map { Contest(hitCase.name, $0, call: nil) }
            }
            try await run(&contests, hitCase)
        }
        for subject in bed.subjects { if let finding = await subject.close() { findings.append(finding) } }
    }

    private mutating func runStages() async throws {
        let stages = Stage.allCases.filter { options.includes(case: $0.name) }
        guard !stages.isEmpty, options.includes(subject: "holdfast") else { return }
        Program.say("stages")
        var subjects: [StageSubject] = []
        for stage in stages {
            let place = scratch.path(of: stage.name)
            subjects.append(try await StageSubject(stage, directory: place, count: plan.entries))
        }
        var contests = subjects.map { subject in
            Contest(subject.stage.name, "holdfast") { _, places in try await subject.ask(places) }
        }
        try await run(&contests, nil)
        for subject in subjects { await subject.close() }
    }

    private mutating func run(_ contests: inout [Contest], _ hitCase: HitCase?) async throws {
        for (round, order) in Rounds.orders(subjects: contests.count, rounds: plan.rounds + 1).enumerated() {
            // The first round is a warm-up and is not counted.
            if round > 3, watch.seconds > plan.totalSeconds { break }
            for index in order {
                if contests[index].call != nil {
                    try await contests[index].turn(plan.turn, counter, isCounted: round > 0)
                } else if let hitCase {
                    ask(&contests[index], hitCase, round)
                }
            }
        }
        for index in contests.indices { try await contests[index].countAllocations() }
        finished += contests
    }

    // MARK: Instructions

    /// Counts in another process if this system has no accessible counter.
    private func countElsewhere(_ report: inout Report) -> [String: Double] {
        let names = CountedHits.cases.map(\.name) + CountedHits.stages.map(\.name)
        guard counter == nil,
            finished.contains(where: { names.contains($0.name) && CountedHits.subjects.contains($0.subject) })
        else { return [:] }
        Program.say("instructions, by callgrind")
        do throws(CallgrindRun.Failure) {
            let seconds = max(5, plan.countSeconds - watch.seconds)
            let counts = try CallgrindRun.instructions(CountedHits.words(plan), within: seconds)
            report.note(
                "Instructions were counted by callgrind, in memory only, because this system has no accessible counter."
            )
            return counts
        } catch {
            report.note("Instructions were not counted: this system has no accessible counter, and \(error.reason).")
            return [:]
        }
    }
}
