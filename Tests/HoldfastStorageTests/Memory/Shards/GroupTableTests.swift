// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("The table of a memory store's shard", .timeLimit(.minutes(20)))
struct GroupTableTests {
    private static let owner = MemoryShards()

    private static func record(_ key: StoreKey, _ number: UInt64) -> MemoryRecord {
        let entry = StoredEntry(
            key: key,
            variant: StoreKey("\(number)"),
            version: .init(number: number),
            description: EntryDescription("m"),
            bodyLength: 1,
            storedAt: .at(0)
        )
        let handle = SlotHandle(slot: UInt32(number), life: 1)
        return MemoryRecord(
            entry,
            held: ResidentBody(ByteChunk([UInt8(truncatingIfNeeded: number)]), handle: handle, in: owner)
        )
    }

    /// Few hashes, so that keys meet in their buckets, in the fragments and in whole hashes.
    private static func hash(_ key: Int, _ meet: Int) -> UInt64 {
        switch meet {
        case 0: UInt64(key) &* 0x9E37_79B9_7F4A_7C15
        case 1: UInt64(key % 5) | UInt64(key) << 40
        case 2: UInt64(key % 7) &* 0x0101_0101_0101_0101
        default: 0
        }
    }

    @Test("It behaves like a dictionary, even if hashes collide", arguments: 0..<4, 1...3 as ClosedRange<UInt64>)
    func model(meet: Int, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var table = GroupTable()
        var model: [Int: [MemoryRecord]] = [:]
        var places: [Int: Int] = [:]
        for step in 0..<3_000 {
            let number = Int.random(in: 0..<90, using: &generator)
            let (key, hash) = (StoreKey("key \(number)"), Self.hash(number, meet))
            let count = [0, 0, 1, 1, 1, 3].randomElement(using: &generator) ?? 0
            let records = (0..<count).map { Self.record(key, UInt64(step * 8 + $0)) }
            table.replace(key, hash: hash, with: records)
            if model[number] == nil { places[number] = table.place(of: key, hash) }
            model[number] = records.isEmpty ? nil : records
            if records.isEmpty { places[number] = nil }
            let asked = Int.random(in: 0..<100, using: &generator)
            let (other, otherHash) = (StoreKey("key \(asked)"), Self.hash(asked, meet))
            let found = table.records(of: other, otherHash)
            #expect(found.map(\.handle) == (model[asked] ?? []).map(\.handle), "seed \(seed), step \(step)")
            #expect(table.place(of: other, otherHash) == places[asked], "a group moved")
            if let place = table.place(of: other, otherHash) {
                #expect(table.places(hash: otherHash).contains(place))
                let group = table.groups[place]
                #expect(group.entries == found.map(\.entry))
                #expect(group.onlyHandle == (found.count == 1 ? found[0].handle : .none))
                #expect(found.allSatisfy { $0.held.hasSiblings == (found.count > 1) })
            }
        }
        #expect(table.groups.count { !$0.entries.isEmpty } == model.count)
        for number in model.keys { table.replace(StoreKey("key \(number)"), hash: Self.hash(number, meet), with: []) }
        #expect(table.groups.count { !$0.entries.isEmpty } == 0)
        #expect(table.place(of: StoreKey("key 1"), Self.hash(1, meet)) == nil)
    }

    @Test("Keys are distinguished by every byte", arguments: ["", "a", "12345678", "123456789", "1234567812345678"])
    func keys(text: String) {
        var table = GroupTable()
        let key = StoreKey(text)
        table.replace(key, hash: 1, with: [Self.record(key, 1)])
        #expect(table.place(of: StoreKey(text), 1) != nil)
        #expect(table.place(of: StoreKey(text + "x"), 1) == nil)
        for place in text.utf8.indices {
            var bytes = Array(text.utf8)
            bytes[text.utf8.distance(from: text.utf8.startIndex, to: place)] ^= 1
            #expect(table.place(of: StoreKey(bytes), 1) == nil)
        }
        if !text.isEmpty { #expect(table.place(of: StoreKey(String(text.dropLast())), 1) == nil) }
    }

    @Test("The read buffer keeps the first hits, drops the rest and says when to pass them on")
    func buffer() {
        var buffer = ReadBuffer()
        var due: [Int] = []
        for number in 1...100 {
            if buffer.note(SlotHandle(slot: UInt32(number), life: 1)) { due.append(number) }
        }
        #expect(due.prefix(5) == [32, 40, 48, 56, 64])
        #expect(due.dropFirst(5).elementsEqual(65...100))
        var drained: [UInt32] = []
        buffer.drain { drained.append($0.slot) }
        #expect(drained.elementsEqual(1...64))
        #expect(buffer.count == 0)
        buffer.drain { _ in Issue.record("a hit was handed out twice") }
    }
}
