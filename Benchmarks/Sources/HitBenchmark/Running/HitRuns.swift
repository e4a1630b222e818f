// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import Holdfast

/// All cases of a tier and a length, then the next; then the stages. Within each all subjects stand ready, and take turns.
struct HitRuns {
    let plan: Plan
    let options: CommandOptions
    let scratch: ScratchDirectory
    let counter: InstructionCounter?
    /// Runs since the program began.
    let watch: Stopwatch
    private(set) var report = Report()
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

    /// Measures what the options ask for.
    mutating func run() async throws {
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let cases = HitCase.all.filter { options.includes(case: $0.name) && $0.threads <= processors }
        startPeers(cases)
        defer { peers?.close() }
        for tier in HitCase.Tier.allCases {
            for length in HitCase.lengths {
                let own = cases.filter { $0.tier == tier && $0.length == length }
                if !own.isEmpty { try await run(own, tier, length) }
            }
        }
        try await runStages()
        if processors < 2 { report.note("Cases of two threads were left out: this machine has one processor.") }
        if counter == nil { report.note("This system lends no counter of instructions.") }
        if let peers, !peers.versions.isEmpty {
            let names = peers.versions.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            report.note("Python's caches: \(names.joined(separator: ", ")).")
        }
    }

    private mutating func startPeers(_ cases: [HitCase]) {
        guard cases.contains(where: Self.suitsPeers), PythonPeers.names.contains(where: options.includes(subject:))
        else { return }
        do {
            Program.say("Python's caches: looking for them, installing them where they are missing")
            peers = try PythonPeers(
                directory: scratch.path(of: "python"),
                installingWithin: plan.installSeconds
            )
        } catch {
            missingPeers = (error as? PeerInstallation.Failure)?.reason ?? "\(error)"
        }
    }

    /// Python runs one thread at a time, and has one way to be asked.
    private static func suitsPeers(_ hitCase: HitCase) -> Bool { hitCase.threads == 1 && hitCase.face == .send }

    private mutating func run(_ cases: [HitCase], _ tier: HitCase.Tier, _ length: Int) async throws {
        Program.say("\(tier.rawValue), \(length >> 10) KiB")
        let subjects = try await subjects(tier, length)
        let askings = (0..<2).map { Asking(plan.entries, length: length, thread: $0) }
        // Said at each request, as a caller does who wants nothing older than an hour.
        let judged = Asking(plan.entries, length: length, thread: 0, directive: "max-age=3600")
        if peers != nil, cases.contains(where: Self.suitsPeers) {
            do {
                try peers?.fill(tier, length: length, entries: plan.entries)
            } catch {
                missingPeers = (error as? PeerInstallation.Failure)?.reason ?? "\(error)"
            }
        }
        for hitCase in cases {
            var contests = subjects.filter { $0.takesPart(in: hitCase) }.map { subject in
                Contest(
                    hitCase.name,
                    subject.name,
                    threads: hitCase.threads,
                    isSlow: subject.isSlow
                ) { thread, places in
                    let asking = hitCase.face == .judged ? judged : askings[thread]
                    return try await subject.ask(asking, places, hitCase.face)
                }
            }
            if Self.suitsPeers(hitCase) {
                contests += PythonPeers.names.filter(options.includes(subject:)).map {
                    Contest(hitCase.name, $0, ask: nil)
                }
            }
            try await run(&contests, hitCase)
        }
        for subject in subjects { if let finding = await subject.close() { findings.append(finding) } }
    }

    private func subjects(_ tier: HitCase.Tier, _ length: Int) async throws -> [any Subject] {
        let count = plan.entries
        let room = max(64 << 20, 4 * count * (length + 2_048))
        func place(_ name: String) -> String { scratch.path(of: "\(tier.rawValue)-\(length)-\(name)") }
        var made: [any Subject] = []
        if options.includes(subject: "holdfast") {
            let cache =
                tier == .memory
                ? HTTPCache.inMemory(capacity: max(32 << 20, 4 * count * (length + 2_048)))
                : try await HTTPCache.onDisk(at: URL(fileURLWithPath: place("holdfast")), capacity: room)
            made.append(try await HoldfastSubject("holdfast", cache, count: count, length: length))
        }
        if options.includes(subject: "holdfast-tiered"), tier == .memory {
            let directory = URL(fileURLWithPath: place("tiered"))
            let cache = try await HTTPCache.tiered(at: directory, memory: room, capacity: room)
            made.append(try await HoldfastSubject("holdfast-tiered", cache, count: count, length: length))
        }
        if options.includes(subject: "dictionary"), tier == .memory {
            made.append(DictionarySubject(count: count, length: length))
        }
        if options.includes(subject: "raw"), tier == .disk {
            made.append(try RawFileSubject(path: place("raw"), count: count, length: length))
        }
        if options.includes(subject: "urlcache") {
            let few = tier == .disk ? plan.slowEntries : count
            let directory = tier == .disk ? place("urlcache") : nil
            made.append(try URLCacheSubject(directory: directory, count: few, length: length))
        }
        return made
    }

    private mutating func run(_ contests: inout [Contest], _ hitCase: HitCase?) async throws {
        for (round, order) in Rounds.orders(subjects: contests.count, rounds: plan.rounds + 1).enumerated() {
            // The first round warms up and is not counted.
            if round > 3, watch.seconds > plan.totalSeconds { break }
            for index in order {
                if contests[index].ask != nil {
                    try await contests[index].turn(plan.turn, counter, isCounted: round > 0)
                } else if let hitCase {
                    ask(&contests[index], hitCase, round)
                }
            }
        }
        for index in contests.indices {
            try await contests[index].count()
            contests[index].add(to: &report)
            if let finding = contests[index].finding { findings.append(finding) }
        }
    }

    /// Lets one of Python's caches take its turn; what fails leaves it out.
    private mutating func ask(_ contest: inout Contest, _ hitCase: HitCase, _ round: Int) {
        guard missingPeers == nil, let peers else {
            contest.skipped = missingPeers ?? "it was not started"
            return
        }
        do {
            let spent = try peers.turn(contest.subject, hitCase, nanoseconds: plan.turn, round: round)
            contest.note(spent, isCounted: round > 0)
        } catch {
            missingPeers = (error as? PeerInstallation.Failure)?.reason ?? "\(error)"
            contest.skipped = missingPeers
        }
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
}
