// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTestKit
import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

/// Random histories of the tables and counts below the stores, against what a dictionary or a list would do.
@Suite("Histories of tables and counts", .timeLimit(.minutes(600)))
struct TableHistories {
    private struct Identity: Hashable {
        let fragment: UInt64
        let variant: UInt32
    }

    private static let highest: UInt64 = 1 << 43 - 1

    private func row(_ identity: Identity, _ step: Int, using generator: inout SeededGenerator) -> IndexRow {
        IndexRow(
            fragment: identity.fragment,
            variant: identity.variant,
            place: RecordLocation(
                slot: UInt16.random(in: 0..<4_095, using: &generator),
                unit: UInt32(truncatingIfNeeded: generator.magnitude(upTo: 1 << 30 - 1)),
                units: UInt16(truncatingIfNeeded: step)
            ),
            order: UInt64(1 + generator.magnitude(upTo: 1 << 48 - 2)),
            mark: UInt8.random(in: 0...255, using: &generator),
            isPinned: generator.once(in: 9),
            hasBlob: generator.once(in: 9),
            shadows: generator.once(in: 9)
        )
    }

    @Test("Rows are present as in a dictionary, from none to a million", arguments: [40, 3_000, 1_000_000])
    func rows(range: Int) throws {
        var faults = HistoryFaults()
        let steps = History.steps(percent: 9, among: 3)
        var generator = History.generator("rows \(range)")
        var table = RowTable()
        var random = PolicyRandom(seed: 1)
        var model: [Identity: IndexRow] = [:]
        var known: [Identity] = []
        var phase = 8
        for step in 0..<steps {
            // Grows and shrinks by turns, now and then with one kind of call alone.
            if generator.once(in: max(50, steps / 12)) {
                phase = [10, 8, 5, 2, 0].randomElement(using: &generator) ?? 5
            }
            var identity = Identity(
                fragment: UInt64(generator.magnitude(upTo: range))
                    &* (generator.once(in: 2) ? 1 : Self.highest / UInt64(range)),
                variant: UInt32(truncatingIfNeeded: generator.magnitude(upTo: generator.once(in: 3) ? 50 : 2))
            )
            let fresh = row(identity, step, using: &generator)
            if Int.random(in: 0..<10, using: &generator) < phase {
                faults.check(
                    try table.insert(fresh) == model[identity],
                    at: step,
                    "a row was put in the place of another"
                )
                model[identity] = fresh
                known.append(identity)
            } else {
                if !known.isEmpty, !generator.once(in: 4) {
                    let index = Int.random(in: 0..<known.count, using: &generator)
                    known.swapAt(index, known.count - 1)
                    identity = known.removeLast()
                    if model[identity] != nil { known.append(identity) }
                }
                let old = model[identity]
                let at = old?.place ?? fresh.place
                switch Int.random(in: 0..<8, using: &generator) {
                case 0:
                    table.change(identity.fragment, variant: identity.variant) { $0.mark &+= 37 }
                    if let old { model[identity]?.mark = old.mark &+ 37 }
                    let drawn = table.draw(3, using: &random)
                    faults.check(
                        drawn.count == min(3, model.count)
                            && drawn.allSatisfy {
                                model[Identity(fragment: $0.fragment, variant: $0.variant)] == $0
                            },
                        at: step,
                        "drew rows that are not there"
                    )
                case 1:
                    let isThere = table.change(identity.fragment, variant: identity.variant) { $0.isPinned = true }
                    faults.check(isThere == (old != nil), at: step, "a change found what is not there, or not what is")
                    model[identity]?.isPinned = true
                case 2 where generator.once(in: 200) && phase < 5:
                    table.removeAll()
                    (model, known) = ([:], [])
                case 2: try table.reserve(generator.magnitude(upTo: 5_000))
                default:
                    faults.check(
                        table.remove(identity.fragment, variant: identity.variant, at: at) == old,
                        at: step,
                        "removed another row"
                    )
                    model[identity] = nil
                }
            }
            faults.check(
                table.row(identity.fragment, variant: identity.variant) == model[identity],
                at: step,
                "shows another row"
            )
            faults.check(table.count == model.count, at: step, "\(table.count) rows, model \(model.count)")
            guard step % max(500, steps / 40) == 0 else { continue }
            let sorted = model.values.sorted { ($0.fragment, $0.variant) < ($1.fragment, $1.variant) }
            var held: [IndexRow] = []
            table.forEach { held.append($0) }
            faults.check(held == sorted, at: step, "the rows are not the model's, or not in order")
            faults.check(
                table.bytes <= 35 * max(model.count, 5_000) + 65_536,
                at: step,
                "\(table.bytes) bytes for \(model.count) rows"
            )
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }

    @Test("The sharded index holds what a dictionary holds")
    func shards() throws {
        var faults = HistoryFaults()
        var generator = History.generator("shards")
        let index = ShardedIndex()
        var model: [UInt64: IndexRow] = [:]
        for step in 0..<History.steps(percent: 4, among: 1) {
            // Few enough to meet again.
            let primary = SplitMix64.mixed(UInt64(generator.magnitude(upTo: 5_000))) & ~(0x7FFF << 43)
            let fragment = ShardedIndex.fragment(of: primary)
            let fresh = row(Identity(fragment: fragment, variant: 7), step, using: &generator)
            let old = model[primary]
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let replaced = try index.shard(of: primary).state.withLock { try $0.table.insert(fresh) }
                faults.check(replaced == old, at: step, "a row was put in the place of another")
                model[primary] = fresh
            case 5, 6:
                let used = index.shard(of: primary).state.withLock { shard in
                    shard.table.useRows(fragment, frequencies: &shard.frequencies).all
                }
                faults.check(used.map(\.order) == [old?.order].compactMap { $0 }, at: step, "used other rows")
                if let row = used.first { model[primary]?.mark = row.mark }
            default:
                let removed = index.shard(of: primary).state.withLock {
                    $0.remove(fragment, variant: 7, at: (old ?? fresh).place)
                }
                faults.check(removed == old, at: step, "removed another row")
                model[primary] = nil
            }
            faults.check(
                index.rows(of: primary).all == [model[primary]].compactMap { $0 },
                at: step,
                "shows other rows"
            )
            if step % 256 == 0 { faults.check(index.count == model.count, at: step, "counts other rows") }
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }

    @Test("Recently evicted keys are known, and memory follows the entries")
    func ghosts() {
        var faults = HistoryFaults()
        var generator = History.generator("ghosts")
        var queue = GhostQueue(limit: 1_000)
        var limit = 1_000
        var entries = 0
        for step in 0..<History.steps(percent: 4, among: 1) {
            if step % 300 == 0 { entries = generator.magnitude(upTo: 200_000) }
            if step % 700 == 0 {
                limit = generator.magnitude(upTo: step % 1_400 == 0 ? .max : 1 << 20)
                queue.setLimit(limit)
            }
            let primary = generator.next()
            let size = generator.magnitude(upTo: limit)
            queue.note(GhostQueue.mark(primary), size: size, entries: entries / 100)
            guard generator.once(in: 2) else { continue }
            // What alone is as long as the memory has fallen out of it.
            _ = queue.takes(GhostQueue.mark(primary))
            faults.check(!queue.takes(GhostQueue.mark(primary)), at: step, "the queue knows a key that was taken")
        }
        #expect(queue.bytes < 1 << 20)
        #expect(faults.all == [], "seed \(History.seed)")
    }

    @Test("A sketch never estimates less than was counted")
    func sketches() {
        var faults = HistoryFaults()
        var generator = History.generator("sketches")
        var sketch = FrequencySketch(words: 64)
        var popularity = AgingPopularity()
        var hits = HitSketch(window: 300)
        var model: [UInt32: Int] = [:]
        for step in 0..<History.steps(percent: 3, among: 1) {
            let hash = UInt32(truncatingIfNeeded: SplitMix64.mixed(UInt64(generator.magnitude(upTo: 2_000))))
            switch Int.random(in: 0..<400, using: &generator) {
            case 0:
                sketch.halve()
                model = model.mapValues { $0 / 2 }
            case 1:
                sketch = FrequencySketch(words: generator.magnitude(upTo: 3_000))
                model = [:]
            case 2:
                sketch.raise(hash, to: generator.magnitude(upTo: .max) - 5)
            case 3:
                popularity.grow(to: generator.magnitude(upTo: 20_000), keeping: Array(model.keys))
            default:
                let estimate = sketch.add(hash)
                model[hash] = min(15, model[hash, default: 0] + 1)
                faults.check((model[hash, default: 0]...15).contains(estimate), at: step, "estimates \(estimate)")
                popularity.count(hash)
                faults.check((0...15).contains(popularity.estimate(hash)), at: step, "a popularity is out of range")
                faults.check(
                    (0...3).contains(hits.note(UInt64(hash) << 32 | UInt64(hash))),
                    at: step,
                    "more than three hits"
                )
            }
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }

    @Test("The queue of useless slots returns the earliest, and time may jump back")
    func useless() {
        var faults = HistoryFaults()
        var generator = History.generator("useless")
        var queue = ExpiryQueue()
        var model: [Int: Int64] = [:]
        for step in 0..<History.steps(percent: 3, among: 1) {
            let slot = generator.magnitude(upTo: 60)
            let instant =
                Int64(generator.magnitude(upTo: generator.once(in: 5) ? .max : 1_000))
                - (generator.once(in: 9) ? .max : 0)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                queue.set(slot, instant: StoreInstant(milliseconds: instant))
                model[slot] = instant == .max ? nil : instant
            case 2:
                queue.remove(slot)
                model[slot] = nil
            default:
                let found = queue.first(before: StoreInstant(milliseconds: instant))
                let least = model.values.min()
                let isRight =
                    found.map { model[$0] == least && least.map { $0 < instant } == true } ?? (least ?? .max >= instant)
                faults.check(isRight, at: step, "\(String(describing: found)) is not the earliest")
            }
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }

    @Test("The tiers' coherence tracker counts changes and promotions like simple lists")
    func tiers() {
        var faults = HistoryFaults()
        var generator = History.generator("tiers")
        let limit = 10_000
        var coherence = TierCoherence(maximumBytes: limit)
        var changing: [StoreKey?] = []
        var promotions: [StoreKey: (bytes: Int, isCurrent: Bool)] = [:]
        for step in 0..<History.steps(percent: 4, among: 1) {
            let key = StoreKey("\(generator.magnitude(upTo: 40))")
            // Stretches in which only one thing happens.
            let draw = step / 400 % 5 == 4 ? [0, 2, 4, 5][step / 2_000 % 4] : Int.random(in: 0..<6, using: &generator)
            switch draw {
            case 0:
                let any: StoreKey? = generator.once(in: 6) ? nil : key
                guard changing.count < 60 else { break }
                coherence.beginChange(of: any)
                changing.append(any)
                for other in promotions.keys where any == nil || other == any { promotions[other]?.isCurrent = false }
            case 1, 2:
                guard let index = changing.indices.randomElement(using: &generator) else { break }
                coherence.endChange(of: changing.remove(at: index))
            case 3, 4:
                let bytes = generator.magnitude(upTo: generator.once(in: 9) ? .max : limit / 4)
                let sum = promotions.values.reduce(0) { $0 + $1.bytes }
                let isFree = !changing.contains(nil) && !changing.contains(key) && promotions[key] == nil
                let expected = isFree && promotions.count < TierCoherence.maximumPromotions && bytes <= limit - sum
                faults.check(
                    coherence.beginPromotion(of: key, bytes: bytes) == expected,
                    at: step,
                    "took a promotion in, or did not"
                )
                if expected { promotions[key] = (bytes, true) }
            default:
                coherence.endPromotion(of: key)
                promotions[key] = nil
            }
            let isRight =
                coherence.bytes == promotions.values.reduce(0) { $0 + $1.bytes } && coherence.bytes <= limit
                && coherence.isIdle == promotions.isEmpty
                && coherence.isCurrent(key) == (promotions[key]?.isCurrent ?? false)
                && coherence.trusts(key) == (!changing.contains(nil) && !changing.contains(key))
            faults.check(isRight, at: step, "the tracker says something else")
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }

    @Test("Space granted on disk, pinned there and being written in memory adds up")
    func ledgers() {
        var faults = HistoryFaults()
        var generator = History.generator("ledgers")
        let capacity = 1 << 20
        let budget = SpaceBudget(geometry: Geometry(capacity: capacity))
        let space = SpaceQuota(budget: budget, used: 0)
        let pins = PinRegistry(capacity: capacity)
        var writers = WritersInFlight()
        var headroom = Headroom(capacity: capacity)
        var breaker = DeviceCircuitBreaker()
        var granted: [Int] = []
        var sum = 0
        var pinned: [EntryIdentity: Int] = [:]
        var writing: [UInt64: Int] = [:]
        for step in 0..<History.steps(percent: 4, among: 1) {
            let bytes = generator.magnitude(upTo: generator.once(in: 9) ? .max : capacity / 4)
            if step / 500 % 3 != 1 || generator.once(in: 9) {
                let isGranted = space.grant(bytes, for: .caller)
                faults.check(
                    isGranted == (bytes <= capacity - budget.reserve - sum),
                    at: step,
                    "granted \(bytes) bytes, or did not"
                )
                if isGranted {
                    granted.append(bytes)
                    sum += bytes
                }
            } else if let last = granted.popLast() {
                space.release(last)
                sum -= last
            }
            faults.check(space.used == sum, at: step, "\(space.used) bytes are granted")
            let identity = EntryIdentity(primary: UInt64(generator.magnitude(upTo: 30)), variant: 0)
            if generator.once(in: 3) {
                pins.release(identity)
                pinned[identity] = nil
            } else {
                let rest = capacity - pinned.values.reduce(0, +) + (pinned[identity] ?? 0)
                faults.check(
                    pins.pin(identity, weight: bytes) == (bytes <= rest),
                    at: step,
                    "pinned \(bytes) bytes, or did not"
                )
                if bytes <= rest { pinned[identity] = bytes }
            }
            let length = min(bytes, capacity / 8)
            if let id = writing.keys.min(), writing.count > 8 || generator.once(in: 2) {
                if generator.once(in: 2) {
                    writers.reserve(length, for: id)
                    writing[id, default: 0] += length
                } else {
                    writers.end(id)
                    writing[id] = nil
                }
            } else {
                headroom.noteBegin(inFlight: writers.reserved)
                let key = StoreKey("k")
                let id = writers.begin(
                    .init(key: key, variant: key, description: EntryDescription(""), reserved: length)
                )
                writing[id] = length
            }
            headroom.note(inFlight: writers.reserved)
            faults.check(
                writers.reserved == writing.values.reduce(0, +),
                at: step,
                "\(writers.reserved) bytes are reserved"
            )
            faults.check((0...capacity / 8).contains(headroom.bytes), at: step, "\(headroom.bytes) bytes of headroom")
            // A clock that jumps anywhere holds no rest for ever.
            let now = StoreInstant(milliseconds: Int64(truncatingIfNeeded: generator.next()))
            if step / 300 % 2 == 0 { breaker.failed(now: now) } else if generator.once(in: 9) { breaker.succeeded() }
            var refusals = 0
            while step / 300 % 2 == 1, !breaker.admits(now: nil) { refusals += 1 }
            faults.check(refusals <= DeviceCircuitBreaker.refusals, at: step, "\(refusals) refusals")
        }
        #expect(faults.all == [], "seed \(History.seed)")
    }
}
