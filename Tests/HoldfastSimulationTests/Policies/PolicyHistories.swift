// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

/// Random histories of every eviction policy, each a sequence of phases in which one kind of call prevails.
@Suite("Histories of the eviction policies", .timeLimit(.minutes(600)))
struct PolicyHistories {
    static let strategies = EvictionStrategy.all + [.densityTinyLFU(beta: 0), .densityTinyLFU(beta: 1)]

    /// What prevails for a while.
    private enum Phase: CaseIterable {
        case mixed, onlyNew, onlyHits, onlyMisses, onlyRemovals, onlyResizes, capacities
        /// Many keys seen, few held.
        case seenAndGone
        /// One that stays for each that comes and goes.
        case oneStays
        case extremeSizes
    }

    /// One history: a policy's owner and where its phases draw from.
    private struct Run {
        var owner: PolicyOwner
        var generator: SeededGenerator
        /// Bytes that the capacity goes around, and the usual size of an entry.
        let capacity: Int
        let size: Int
        private var newest: UInt64 = 1 << 40

        init(_ strategy: EvictionStrategy, name: String, capacity: Int, size: Int) {
            generator = History.generator("\(strategy) \(name)")
            (self.capacity, self.size) = (capacity, size)
            let every = 2_048
            owner = PolicyOwner(strategy, capacity: capacity, seed: generator.next(), looksAtAllEvery: every)
        }

        private mutating func anySize() -> Int {
            switch Int.random(in: 0..<40, using: &generator) {
            case 0: 0
            case 1: capacity &+ 1
            case 2: generator.magnitude(upTo: capacity)
            case 3: capacity
            default: Int.random(in: 0...2 * size, using: &generator)
            }
        }

        private mutating func extremeSize() -> Int {
            let limit = Int(UInt32.max)
            let sizes = [
                0, 1, -1, .min, .max, .max - 1, .max / 2, .max / 4, .max / 4 + 1, limit - 1, limit, limit + 1, capacity,
                capacity / 10, capacity / 2 + 1,
            ]
            return sizes[Int.random(in: 0..<sizes.count, using: &generator)]
        }

        private mutating func anyCapacity() -> Int {
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: 0
            case 1: .max
            case 2: -7
            case 3: size
            case 4..<10: generator.magnitude(upTo: capacity)
            default: capacity
            }
        }

        private mutating func anyHeld() -> UInt64? { owner.key(near: UInt32(truncatingIfNeeded: generator.next())) }

        private mutating func newKey() -> UInt64 {
            newest += 1
            return newest
        }

        private mutating func step(_ phase: Phase, _ number: Int) {
            switch phase {
            case .mixed:
                let key = UInt64(generator.magnitude(upTo: 5_000))
                switch Int.random(in: 0..<100, using: &generator) {
                case 0..<86: owner.request(key, size: anySize())
                case 86..<92: owner.remove(key)
                case 92..<97: owner.resize(key, to: anySize())
                case 97: owner.missUse()
                default: owner.setCapacity(anyCapacity())
                }
            case .onlyNew: owner.request(newKey(), size: anySize())
            case .onlyHits: if let key = anyHeld() { owner.request(key, size: 1) } else { owner.request(1, size: 1) }
            case .onlyMisses: owner.request(UInt64(number % 3), size: capacity &+ 1 > 0 ? capacity + 1 : .max)
            case .onlyRemovals: if let key = anyHeld() { owner.remove(key) } else { owner.missUse() }
            case .onlyResizes: if let key = anyHeld() { owner.resize(key, to: anySize()) }
            case .capacities: owner.setCapacity(anyCapacity())
            case .seenAndGone:
                let key = newKey()
                owner.request(key, size: anySize())
                owner.remove(key)
            case .oneStays:
                // What goes is now the first of the two and now the second.
                let sizes = [number % 3, max(1, capacity / 60)]
                let keys = [newKey(), newKey()]
                for index in number % 2 == 0 ? [0, 1] : [1, 0] { owner.request(keys[index], size: sizes[index]) }
                owner.remove(keys[1])
            case .extremeSizes:
                let key = UInt64(number % 7)
                if number % 3 == 0 {
                    owner.resize(key, to: extremeSize())
                } else {
                    owner.request(key, size: extremeSize())
                }
                if number % 31 == 0 { owner.setCapacity(extremeSize()) }
            }
        }

        /// Runs through phases of up to `longest` steps.
        mutating func phases(_ steps: Int, longest: Int) {
            var left = steps
            while left > 0, owner.faults.isEmpty {
                let phase = Phase.allCases.randomElement(using: &generator) ?? .mixed
                let length = min(left, 1 + generator.magnitude(upTo: longest))
                run(phase, length)
                left -= length
                if phase == .capacities || phase == .extremeSizes { owner.setCapacity(capacity) }
            }
        }

        mutating func run(_ phase: Phase, _ steps: Int) {
            for number in 0..<steps { step(phase, number) }
        }

        static func seenAndGone(_ strategy: EvictionStrategy, steps: Int) -> Run {
            var run = Run(strategy, name: "seen and gone", capacity: 64 << 20, size: 1_000)
            run.run(.seenAndGone, steps)
            return run
        }

        static func oneStays(_ strategy: EvictionStrategy, steps: Int) -> Run {
            var run = Run(strategy, name: "one stays", capacity: 1 << 20, size: 100)
            run.run(.oneStays, steps)
            return run
        }

        /// A cache of so many entries: full, and then through all phases.
        static func entries(_ count: Int, _ strategy: EvictionStrategy, steps: Int, seed: Int) -> Run {
            let size = [1, 30, 5_000][seed % 3]
            var run = Run(strategy, name: "\(count) entries \(seed)", capacity: count * size, size: size)
            // A million entries fill only where there is the time for it.
            run.run(.onlyNew, min(count * 5 / 4, max(steps, History.steps / 8)))
            run.phases(steps, longest: max(100, steps / 4))
            return run
        }
    }

    private func check(_ run: Run, _ note: String) {
        var run = run
        run.owner.checkAll()
        #expect(run.owner.faults.isEmpty, "\(note), seed \(History.seed): \(run.owner.faults.prefix(3))")
        // Nothing grows with what was seen, only with the entries that were there at once.
        let isLearner = run.owner.policy is ThreeLCachePolicy
        let bound = (isLearner ? 8 << 20 : 262_144) + (isLearner ? 1_024 : 128) * Int(run.owner.next)
        #expect(run.owner.policy.metadataBytes <= bound, "\(note), seed \(History.seed): memory grew")
    }

    @Test("Many keys seen and few stored", arguments: strategies)
    func seenAndGone(strategy: EvictionStrategy) {
        let steps = max(3_000, History.steps(percent: 8, among: Self.strategies.count))
        check(.seenAndGone(strategy, steps: steps), "\(strategy), seen and gone")
    }

    @Test("Every entry that comes and goes leaves one behind", arguments: strategies)
    func oneStays(strategy: EvictionStrategy) {
        check(
            .oneStays(strategy, steps: History.steps(percent: 8, among: Self.strategies.count)),
            "\(strategy), one stays"
        )
    }

    @Test("From one entry to a million", arguments: strategies)
    func entries(strategy: EvictionStrategy) {
        let counts = [1, 2, 7, 40, 500, 10_000, 1_000_000]
        let rounds = max(1, History.steps / 2_000_000)
        let steps = History.steps(percent: 34, among: Self.strategies.count * counts.count * rounds)
        for count in counts {
            for round in 0..<rounds {
                let run = Run.entries(count, strategy, steps: steps, seed: round + count)
                check(run, "\(strategy), \(count) entries, round \(round)")
            }
        }
    }

    @Test("Time that wraps, in entries and in the sketch")
    func wrappingTime() {
        let steps = History.steps(percent: 3, among: 2)
        for start in [UInt64.max - 4_000_000_000, UInt64(UInt32.max) << 23 - 1_000_000_000] {
            var policy = DensityTinyLFUPolicy(capacity: 5_000, beta: 0.5, seed: 1)
            policy.time = start
            policy.timeStep = 1 << 40
            var owner = PolicyOwner(policy, looksAtAllEvery: 512)
            var generator = History.generator("time \(start)")
            for _ in 0..<steps {
                owner.request(UInt64(generator.magnitude(upTo: 900)), size: generator.magnitude(upTo: 600))
            }
            #expect(owner.faults.isEmpty, "\(start), seed \(History.seed): \(owner.faults.prefix(3))")
        }
    }

    @Test("The trials accept any numbers, and their time may jump")
    func trials() {
        var generator = History.generator("trials")
        var trials = WindowTuner(beta: 1_024, seed: 1)
        var most = 0
        var expected = 0
        var rarities: Set<UInt32> = []
        for step in 0..<History.steps(percent: 5, among: 1) {
            if step % 500 == 0 { expected = generator.magnitude(upTo: [31, 1_000, 1 << 32, .max][step / 500 % 4]) }
            let hash = UInt32(truncatingIfNeeded: generator.next())
            trials.note(
                hash,
                size: generator.magnitude(upTo: .max),
                weight: Int32(truncatingIfNeeded: generator.next()) >> 8,
                now: UInt32(truncatingIfNeeded: generator.next()),
                capacity: generator.magnitude(upTo: .max / 4),
                expected: expected
            )
            most = max(most, trials.bytes)
            rarities.insert(trials.samplingShift)
        }
        #expect(most < 150_000, "seed \(History.seed)")
        #expect(rarities.isSuperset(of: 0...31), "seed \(History.seed): \(rarities.sorted())")
    }

    @Test("Weights stay within their bounds, whatever the bits are")
    func weights() {
        var generator = History.generator("weights")
        let samples: [Int32] = [.min, -1, 0, 1, DensityWeight.highest, .max]
        var faults = HistoryFaults()
        for step in 0..<History.steps(percent: 2, among: 1) {
            let weight = step < samples.count ? samples[step] : Int32(truncatingIfNeeded: generator.next())
            let now = UInt32(truncatingIfNeeded: generator.next())
            let bits = DensityWeight.pack(weight, at: now, over: UInt32(truncatingIfNeeded: generator.next()))
            let unpacked = DensityWeight.unpack(bits, at: UInt32(truncatingIfNeeded: generator.next()))
            let more = DensityWeight.incremented(weight)
            let score = DensityWeight.score(unpacked, size: UInt32(truncatingIfNeeded: generator.next()), beta: 1_024)
            let isRight =
                (0...DensityWeight.highest).contains(more) && (0...15).contains(DensityWeight.count(of: weight))
                && abs(score) < 1 << 24 && DensityWeight.unpack(bits, at: now) == (weight << 8) >> 8
            faults.check(isRight, at: step, "\(weight) at \(now)")
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }
}
