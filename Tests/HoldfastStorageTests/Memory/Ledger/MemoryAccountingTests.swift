// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("The accounting of a memory store", .timeLimit(.minutes(20)))
struct MemoryAccountingTests {
    private static func picky(_ capacity: Int) -> MemoryAccounting {
        MemoryAccounting(capacity: capacity) { PickyPolicy(capacity: $0) }
    }

    private static func lru(_ capacity: Int) -> MemoryAccounting {
        MemoryAccounting(capacity: capacity) { EvictionStrategy.lru.makePolicy(capacity: $0) }
    }

    private static func enter(
        _ accounting: inout MemoryAccounting,
        _ key: UInt64,
        _ cost: Int,
        until: Int64 = .max,
        pinned: Bool = false
    ) throws -> SlotHandle {
        try accounting.makeRoom(cost)
        return accounting.enter(
            hash: key,
            policyKey: key,
            cost: cost,
            uselessAfter: .at(until),
            isPinned: pinned
        )
    }

    @Test("An entry that the policy declines stays on probation until its room is needed")
    func guest() throws {
        var accounting = Self.picky(1_000)
        let first = try Self.enter(&accounting, 1, 400)
        let second = try Self.enter(&accounting, 2, 400)
        #expect(accounting.evictions.isEmpty)
        #expect((accounting.used, accounting.count, accounting.policy.count) == (800, 2, 0))
        #expect(accounting.owner(of: first)?.residence == .probation)
        // The one that has been on probation for longest goes.
        try accounting.makeRoom(300)
        #expect(accounting.evictions.map(\.handle) == [first])
        #expect(accounting.owner(of: first) == nil)
        #expect(accounting.owner(of: second) != nil)
        #expect(accounting.used == 400)
        #expect(accounting.evicted == 1)
    }

    @Test("An entry on probation that is used is offered again, and may evict others")
    func guestOfferedAgain() throws {
        var accounting = Self.picky(1_000)
        let first = try Self.enter(&accounting, 1, 400)
        accounting.use(first)
        #expect(accounting.owner(of: first)?.residence == .kept)
        #expect(
            (accounting.used, accounting.probationBytes, accounting.count, accounting.policy.used) == (
                400, 0, accounting.policy.count, 400
            )
        )
        var victims: [UInt32] = []
        accounting.policy.setCapacity(500, victims: &victims)
        let second = try Self.enter(&accounting, 2, 300)
        accounting.policy.setCapacity(500, victims: &victims)
        accounting.use(second)
        #expect(victims.isEmpty)
        #expect(accounting.evictions.map(\.handle) == [first])
        #expect(accounting.owner(of: second)?.residence == .kept)
        #expect(accounting.used == 300)
    }

    @Test("A handle from an earlier use of a slot counts for nothing")
    func lives() throws {
        var accounting = Self.picky(1_000)
        let first = try Self.enter(&accounting, 1, 100)
        accounting.remove(first)
        let second = try Self.enter(&accounting, 2, 100)
        #expect(first.slot == second.slot)
        #expect(first != second)
        accounting.use(first)
        #expect(accounting.owner(of: second)?.residence == .probation, "a use of the first was credited to the second")
        accounting.remove(first)
        #expect(accounting.owner(of: second) != nil, "the first's removal took the second")
        #expect(accounting.owner(of: SlotHandle(slot: 99, life: 1)) == nil)
        #expect(accounting.owner(of: .none) == nil)
    }

    @Test("Useless entries leave before any victim, however recently they were used")
    func uselessFirst() throws {
        var accounting = Self.lru(1_000)
        let old = try Self.enter(&accounting, 1, 300)
        let useless = try Self.enter(&accounting, 2, 300, until: 10)
        let useful = try Self.enter(&accounting, 3, 300, until: 50)
        accounting.use(useless)
        accounting.latestNow = .at(11)
        let next = try Self.enter(&accounting, 4, 300)
        #expect(accounting.evictions.map(\.handle) == [useless])
        accounting.evictions = []
        _ = try Self.enter(&accounting, 5, 300)
        #expect(accounting.evictions.map(\.handle) == [old])
        accounting.evictions = []
        accounting.latestNow = .at(51)
        accounting.trim(to: 700)
        #expect(accounting.evictions.map(\.handle) == [useful])
        #expect(accounting.owner(of: next) != nil)
    }

    @Test("Bytes within the headroom evict nothing before their commit; bytes beyond it do")
    func headroom() throws {
        var accounting = Self.lru(8_000)
        let key = StoreKey("w")
        let description = EntryDescription("m")
        func write(_ bytes: Int) throws -> UInt64 {
            try accounting.makeRoom(bytes)
            return accounting.begin(.init(key: key, variant: key, description: description, reserved: bytes))
        }
        let first = try write(1_000)
        accounting.writers.end(first)
        for number in 0..<70 as Range<UInt64> { _ = try Self.enter(&accounting, number, 100) }
        #expect(accounting.evictions.isEmpty)
        #expect(accounting.policy.capacity == 7_000)
        let second = try write(1_000)
        #expect(accounting.evictions.isEmpty, "a writer within the headroom evicted something")
        #expect(accounting.used == 8_000)
        _ = try write(500)
        #expect(accounting.evictions.count == 5)
        accounting.writers.end(second)
        accounting.fit()
        #expect(accounting.policy.capacity == 7_000)
    }

    @Test("If there can be no room, nothing is evicted")
    func nothingInVain() throws {
        var accounting = Self.lru(1_000)
        _ = try Self.enter(&accounting, 1, 500, pinned: true)
        _ = try Self.enter(&accounting, 2, 400)
        #expect(throws: StoreError.self) { try accounting.makeRoom(501) }
        #expect(accounting.evictions.isEmpty)
        try accounting.makeRoom(500)
        #expect(accounting.evictions.count == 1)
    }

    @Test(
        "Random steps keep the bytes within the capacity and every entry in one place",
        arguments: 1...6 as ClosedRange<UInt64>
    )
    func random(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var accounting = seed.isMultiple(of: 2) ? Self.picky(10_000) : Self.lru(10_000)
        var model: [SlotHandle: (cost: Int, pinned: Bool)] = [:]
        var writers: [UInt64: Int] = [:]
        var evicted = 0
        for step in 0..<4_000 {
            accounting.evictions = []
            accounting.latestNow = .at(Int64(step))
            let cost = Int.random(in: 0...900, using: &generator)
            let until = StoreInstant.at(Int64(step + Int.random(in: -50...400, using: &generator)))
            let known = model.keys.sorted { ($0.slot, $0.life) < ($1.slot, $1.life) }.randomElement(using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...2:
                guard (try? accounting.makeRoom(cost)) != nil else { break }
                let pins = cost < 200 && Int.random(in: 0..<8, using: &generator) == 0
                let key = UInt64.random(in: 0..<60, using: &generator)
                let handle = accounting.enter(
                    hash: key,
                    policyKey: key,
                    cost: cost,
                    uselessAfter: until,
                    isPinned: pins
                )
                #expect(model[handle] == nil)
                #expect(!accounting.evictions.contains { $0.handle == handle }, "a new entry left at once")
                model[handle] = (cost, pins)
            case 3:
                guard (try? accounting.makeRoom(cost)) != nil else { break }
                let name = StoreKey("w")
                let writer = WritersInFlight.Writer(
                    key: name,
                    variant: name,
                    description: EntryDescription(""),
                    reserved: cost
                )
                writers[accounting.begin(writer)] = cost
            case 4:
                guard let id = writers.keys.sorted().randomElement(using: &generator) else { break }
                if Bool.random(using: &generator), (try? accounting.makeRoom(cost)) != nil {
                    accounting.reserve(cost, for: id)
                    writers[id, default: 0] += cost
                } else {
                    accounting.writers.end(id)
                    accounting.fit()
                    writers[id] = nil
                }
            case 5:
                guard let known else { break }
                accounting.remove(known)
                model[known] = nil
            case 6:
                guard let known, let old = model[known] else { break }
                guard (try? accounting.makeRoom(cost - old.cost)) != nil,
                    accounting.owner(of: known) != nil
                else {
                    break
                }
                let pins = old.pinned && Bool.random(using: &generator)
                accounting.change(known, cost: cost, uselessAfter: until, isPinned: pins)
                #expect(!accounting.evictions.contains { $0.handle == known })
                model[known] = (cost, pins)
            case 7:
                guard let known, let old = model[known] else { break }
                let pinned = model.values.reduce(0) { $0 + ($1.pinned ? $1.cost : 0) }
                let pins = !old.pinned && pinned + old.cost <= 5_000
                accounting.change(known, cost: old.cost, uselessAfter: until, isPinned: pins)
                model[known] = (old.cost, pins)
            case 8:
                if step % 50 == 0 { accounting.trim(to: Int.random(in: -10...10_000, using: &generator)) }
            default:
                for known in model.keys.sorted(by: { $0.slot < $1.slot }).prefix(5) {
                    accounting.use(known)
                }
            }
            for gone in accounting.evictions {
                let old = model.removeValue(forKey: gone.handle)
                #expect(old != nil, "seed \(seed), step \(step): left twice, or was never there")
                #expect(old?.pinned != true, "seed \(seed), step \(step): a pinned entry left")
            }
            evicted += accounting.evictions.count
            let bytes = model.values.reduce(0) { $0 + $1.cost } + writers.values.reduce(0, +)
            #expect(accounting.used == bytes, "seed \(seed), step \(step)")
            #expect(accounting.used <= accounting.capacity, "seed \(seed), step \(step)")
            #expect(accounting.count == model.count, "seed \(seed), step \(step)")
        }
        #expect(accounting.evicted == evicted)
        #expect(evicted > 100)
        for (handle, known) in model {
            let owner = try #require(accounting.owner(of: handle))
            #expect(owner.cost == known.cost)
            #expect((owner.residence == .pinned) == known.pinned)
            #expect((owner.residence == .kept) == accounting.policy.holds(handle.slot))
        }
        accounting.removeAll()
        #expect(accounting.used == 0)
        #expect(accounting.evicted == evicted)
    }
}
