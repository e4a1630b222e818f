// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("The ledger of a memory store", .timeLimit(.minutes(20)))
struct MemoryLedgerTests {
    private typealias Leaving = [MemoryLedger.Leaving]

    private static func picky(_ capacity: Int) -> MemoryLedger {
        MemoryLedger(capacity: capacity) { PickyPolicy(capacity: $0) }
    }

    private static func lru(_ capacity: Int) -> MemoryLedger {
        MemoryLedger(capacity: capacity) { EvictionStrategy.lru.makePolicy(capacity: $0) }
    }

    private static func enter(
        _ ledger: inout MemoryLedger,
        _ key: UInt64,
        _ cost: Int,
        until: Int64 = .max,
        pinned: Bool = false,
        _ leaving: inout Leaving
    ) throws -> SlotTicket {
        try ledger.makeRoom(cost, leaving: &leaving)
        return ledger.enter(
            hash: key,
            policyKey: key,
            cost: cost,
            uselessAfter: .at(until),
            isPinned: pinned,
            &leaving
        )
    }

    @Test("An entry that the policy declines stays as a guest until its room is needed")
    func guest() throws {
        var ledger = Self.picky(1_000)
        var leaving: Leaving = []
        let first = try Self.enter(&ledger, 1, 400, &leaving)
        let second = try Self.enter(&ledger, 2, 400, &leaving)
        #expect(leaving.isEmpty)
        #expect((ledger.used, ledger.count, ledger.policy.count) == (800, 2, 0))
        #expect(ledger.owner(of: first)?.standing == .guest)
        // The one that has been a guest for longest goes.
        try ledger.makeRoom(300, leaving: &leaving)
        #expect(leaving.map(\.ticket) == [first])
        #expect(ledger.owner(of: first) == nil)
        #expect(ledger.owner(of: second) != nil)
        #expect(ledger.used == 400)
        #expect(ledger.evicted == 1)
    }

    @Test("A guest that is used is offered again, and may evict others")
    func guestOfferedAgain() throws {
        var ledger = Self.picky(1_000)
        var leaving: Leaving = []
        let first = try Self.enter(&ledger, 1, 400, &leaving)
        ledger.use(first, leaving: &leaving)
        #expect(ledger.owner(of: first)?.standing == .kept)
        #expect((ledger.used, ledger.guestBytes, ledger.guestCount, ledger.policy.used) == (400, 0, 0, 400))
        var victims: [UInt32] = []
        ledger.policy.setCapacity(500, victims: &victims)
        let second = try Self.enter(&ledger, 2, 300, &leaving)
        ledger.policy.setCapacity(500, victims: &victims)
        ledger.use(second, leaving: &leaving)
        #expect(victims.isEmpty)
        #expect(leaving.map(\.ticket) == [first])
        #expect(ledger.owner(of: second)?.standing == .kept)
        #expect(ledger.used == 300)
    }

    @Test("A ticket from an earlier use of a slot counts for nothing")
    func lives() throws {
        var ledger = Self.picky(1_000)
        var leaving: Leaving = []
        let first = try Self.enter(&ledger, 1, 100, &leaving)
        ledger.remove(first)
        let second = try Self.enter(&ledger, 2, 100, &leaving)
        #expect(first.slot == second.slot)
        #expect(first != second)
        ledger.use(first, leaving: &leaving)
        #expect(ledger.owner(of: second)?.standing == .guest, "a use of the first was credited to the second")
        ledger.remove(first)
        #expect(ledger.owner(of: second) != nil, "the first's removal took the second")
        #expect(ledger.owner(of: SlotTicket(slot: 99, life: 1)) == nil)
        #expect(ledger.owner(of: .none) == nil)
    }

    @Test("Useless entries leave before any victim, however recently they were used")
    func uselessFirst() throws {
        var ledger = Self.lru(1_000)
        var leaving: Leaving = []
        let old = try Self.enter(&ledger, 1, 300, &leaving)
        let useless = try Self.enter(&ledger, 2, 300, until: 10, &leaving)
        let useful = try Self.enter(&ledger, 3, 300, until: 50, &leaving)
        ledger.use(useless, leaving: &leaving)
        ledger.latestNow = .at(11)
        let next = try Self.enter(&ledger, 4, 300, &leaving)
        #expect(leaving.map(\.ticket) == [useless])
        leaving = []
        _ = try Self.enter(&ledger, 5, 300, &leaving)
        #expect(leaving.map(\.ticket) == [old])
        leaving = []
        ledger.latestNow = .at(51)
        ledger.trim(to: 700, &leaving)
        #expect(leaving.map(\.ticket) == [useful])
        #expect(ledger.owner(of: next) != nil)
    }

    @Test("Bytes within the headroom evict nothing before their commit; bytes beyond it do")
    func headroom() throws {
        var ledger = Self.lru(8_000)
        var leaving: Leaving = []
        let key = StoreKey("w")
        let description = EntryDescription("m")
        func write(_ bytes: Int) throws -> UInt64 {
            try ledger.makeRoom(bytes, leaving: &leaving)
            return ledger.begin(.init(key: key, variant: key, description: description, reserved: bytes))
        }
        let first = try write(1_000)
        ledger.writers.end(first)
        for number in 0..<70 as Range<UInt64> { _ = try Self.enter(&ledger, number, 100, &leaving) }
        #expect(leaving.isEmpty)
        #expect(ledger.policy.capacity == 7_000)
        let second = try write(1_000)
        #expect(leaving.isEmpty, "a writer within the headroom evicted something")
        #expect(ledger.used == 8_000)
        _ = try write(500)
        #expect(leaving.count == 5)
        ledger.writers.end(second)
        ledger.fit(&leaving)
        #expect(ledger.policy.capacity == 7_000)
    }

    @Test("If there can be no room, nothing is evicted")
    func nothingInVain() throws {
        var ledger = Self.lru(1_000)
        var leaving: Leaving = []
        _ = try Self.enter(&ledger, 1, 500, pinned: true, &leaving)
        _ = try Self.enter(&ledger, 2, 400, &leaving)
        #expect(throws: StoreError.self) { try ledger.makeRoom(501, leaving: &leaving) }
        #expect(leaving.isEmpty)
        try ledger.makeRoom(500, leaving: &leaving)
        #expect(leaving.count == 1)
    }

    @Test(
        "Random steps keep the bytes within the capacity and every entry in one place",
        arguments: 1...6 as ClosedRange<UInt64>
    )
    func random(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var ledger = seed.isMultiple(of: 2) ? Self.picky(10_000) : Self.lru(10_000)
        var model: [SlotTicket: (cost: Int, pinned: Bool)] = [:]
        var writers: [UInt64: Int] = [:]
        var evicted = 0
        for step in 0..<4_000 {
            var leaving: Leaving = []
            ledger.latestNow = .at(Int64(step))
            let cost = Int.random(in: 0...900, using: &generator)
            let until = StoreInstant.at(Int64(step + Int.random(in: -50...400, using: &generator)))
            let known = model.keys.sorted { ($0.slot, $0.life) < ($1.slot, $1.life) }.randomElement(using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...2:
                guard (try? ledger.makeRoom(cost, leaving: &leaving)) != nil else { break }
                let pins = cost < 200 && Int.random(in: 0..<8, using: &generator) == 0
                let key = UInt64.random(in: 0..<60, using: &generator)
                let ticket = ledger.enter(
                    hash: key,
                    policyKey: key,
                    cost: cost,
                    uselessAfter: until,
                    isPinned: pins,
                    &leaving
                )
                #expect(model[ticket] == nil)
                #expect(!leaving.contains { $0.ticket == ticket }, "a new entry left at once")
                model[ticket] = (cost, pins)
            case 3:
                guard (try? ledger.makeRoom(cost, leaving: &leaving)) != nil else { break }
                let name = StoreKey("w")
                let writer = WritersInFlight.Writer(
                    key: name,
                    variant: name,
                    description: EntryDescription(""),
                    reserved: cost
                )
                writers[ledger.begin(writer)] = cost
            case 4:
                guard let id = writers.keys.sorted().randomElement(using: &generator) else { break }
                if Bool.random(using: &generator), (try? ledger.makeRoom(cost, leaving: &leaving)) != nil {
                    ledger.reserve(cost, for: id)
                    writers[id, default: 0] += cost
                } else {
                    ledger.writers.end(id)
                    ledger.fit(&leaving)
                    writers[id] = nil
                }
            case 5:
                guard let known else { break }
                ledger.remove(known)
                model[known] = nil
            case 6:
                guard let known, let old = model[known] else { break }
                guard (try? ledger.makeRoom(cost - old.cost, leaving: &leaving)) != nil, ledger.owner(of: known) != nil
                else {
                    break
                }
                let pins = old.pinned && Bool.random(using: &generator)
                ledger.change(known, cost: cost, uselessAfter: until, isPinned: pins, leaving: &leaving)
                #expect(!leaving.contains { $0.ticket == known })
                model[known] = (cost, pins)
            case 7:
                guard let known, let old = model[known] else { break }
                let pinned = model.values.reduce(0) { $0 + ($1.pinned ? $1.cost : 0) }
                let pins = !old.pinned && pinned + old.cost <= 5_000
                ledger.setPinned(pins, ticket: known, uselessAfter: until, leaving: &leaving)
                model[known] = (old.cost, pins)
            case 8:
                if step % 50 == 0 { ledger.trim(to: Int.random(in: -10...10_000, using: &generator), &leaving) }
            default:
                for known in model.keys.sorted(by: { $0.slot < $1.slot }).prefix(5) {
                    ledger.use(known, leaving: &leaving)
                }
            }
            for gone in leaving {
                let old = model.removeValue(forKey: gone.ticket)
                #expect(old != nil, "seed \(seed), step \(step): left twice, or was never there")
                #expect(old?.pinned != true, "seed \(seed), step \(step): a pinned entry left")
            }
            evicted += leaving.count
            let bytes = model.values.reduce(0) { $0 + $1.cost } + writers.values.reduce(0, +)
            #expect(ledger.used == bytes, "seed \(seed), step \(step)")
            #expect(ledger.used <= ledger.capacity, "seed \(seed), step \(step)")
            #expect(ledger.count == model.count, "seed \(seed), step \(step)")
        }
        #expect(ledger.evicted == evicted)
        #expect(evicted > 100)
        for (ticket, known) in model {
            let owner = try #require(ledger.owner(of: ticket))
            #expect(owner.cost == known.cost)
            #expect((owner.standing == .pinned) == known.pinned)
            #expect((owner.standing == .kept) == ledger.policy.holds(ticket.slot))
        }
        ledger.removeAll()
        #expect(ledger.used == 0)
        #expect(ledger.evicted == evicted)
    }
}
