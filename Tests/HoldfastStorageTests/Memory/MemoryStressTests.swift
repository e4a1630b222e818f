// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization
import Testing

@testable import HoldfastStorage

@Suite("A memory store under concurrent use", .timeLimit(.minutes(20)))
struct MemoryStressTests {
    private static let capacity = 200_000

    /// A body by which it is told whose it is: the key's number, and the same sixteen bits of its writing throughout.
    private static func body(_ key: Int, _ writing: Int) -> [UInt8] {
        let unit = [UInt8(key), UInt8(truncatingIfNeeded: writing), UInt8(truncatingIfNeeded: writing >> 8)]
        return (0..<(1 + writing % 3_000)).map { unit[$0 % 3] }
    }

    private static func isWhole(_ bytes: [UInt8], _ key: Int, _ entry: StoredEntry) -> Bool {
        guard let writing = Int(entry.description.text) else { return false }
        return bytes == body(key, writing)
    }

    private static func work(_ store: MemoryStore, _ task: UInt64, _ bad: Findings) async throws {
        var generator = SeededGenerator(seed: task)
        for step in 0..<1_500 {
            let key = Int.random(in: 0..<100, using: &generator)
            let name = StoreKey("key \(key)")
            switch Int.random(in: 0..<40, using: &generator) {
            case 0..<24:
                for entry in store.peek(name, now: .at(Int64(step))) ?? [] {
                    guard let body = try? await store.body(of: entry) else { continue }
                    let bytes = body.bytesInMemory?.array ?? []
                    if !isWhole(bytes, key, entry) { bad.add("key \(key) shows another's body") }
                }
            case 24..<36:
                let writing = Int.random(in: 0..<60_000, using: &generator)
                let description = EntryDescription(
                    "\(writing)",
                    uselessAfter: .at(Int64(step + 100)),
                    tags: ["t\(key % 5)"]
                )
                let variant = step.isMultiple(of: 9) ? "v" : ""
                _ = try? await store.put("key \(key)", variant: variant, body(key, writing), description)
            case 36: try await store.invalidate(name)
            case 37: try await store.purge(.tag("t\(step % 5)"), now: .at(0))
            case 38:
                if let entry = store.peek(name, now: .at(0))?.first {
                    try await store.setPinned(step.isMultiple(of: 2), entry)
                    _ = try? await store.replaceDescription(of: entry, with: entry.description, now: .at(0))
                }
            default: store.trim(to: Int.random(in: 0..<capacity, using: &generator))
            }
            let statistics = store.statistics
            if statistics.bytesUsed > capacity { bad.add("\(statistics.bytesUsed) bytes are used") }
        }
    }

    @Test("No key returns another's body, and the bytes stay within the capacity", arguments: [1, 2] as [UInt64])
    func many(seed: UInt64) async throws {
        let store = MemoryStore(capacity: Self.capacity)
        let bad = Findings()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<6 as Range<UInt64> {
                group.addTask { try await Self.work(store, seed * 100 + task, bad) }
            }
            try await group.waitForAll()
        }
        #expect(bad.all == [])
        // What the ledger counts and what the shards hold is the same.
        let entries = try await store.list(after: nil, limit: .max, now: .at(0)).listed
        let statistics = store.statistics
        #expect(entries.reduce(0) { $0 + $1.bytes } == statistics.bytesUsed)
        #expect(entries.count == statistics.entryCount)
        for listed in entries where listed.entry.isPinned { try await store.setPinned(false, listed.entry) }
        store.trim(to: 0)
        #expect(store.statistics.bytesUsed == 0)
        #expect(try await store.list(after: nil, limit: .max, now: .at(0)).listed.isEmpty)
    }

    @Test("A purge takes effect for all keys at once", arguments: 0..<4)
    func purge(form: Int) async throws {
        let store = MemoryStore(capacity: 10 << 20)
        let keys = (0..<200).map { StoreKey("key \($0)") }
        for round in 0..<8 {
            for number in keys.indices { try await store.put("key \(number)", [1], EntryDescription("m", tags: ["t"])) }
            let torn = Findings()
            await withTaskGroup(of: Void.self) { group in
                for start in [0, 70, 140] {
                    group.addTask {
                        var isGone = false
                        for turn in 0..<2_000 where !isGone || turn % 200 != 0 {
                            let there = store.peek(keys[(start + turn) % keys.count], now: .at(0))?.isEmpty == false
                            if there, isGone { torn.add("turn \(turn): a key was there after another was gone") }
                            if !there { isGone = true }
                        }
                    }
                }
                group.addTask {
                    let selections: [PurgeSelection] = [
                        .all, .tag("t"), .keyPrefix(Array("key".utf8)), .matching { $0.bodyLength == 1 },
                    ]
                    let removed = try? await store.purge(selections[form], now: .at(0))
                    #expect(removed == keys.count)
                }
            }
            #expect(torn.all == [], "round \(round)")
        }
        #expect(store.statistics.entriesRemoved == 8 * keys.count)
    }
}

/// What tasks found wrong, the first few of it.
private final class Findings: Sendable {
    private let found = Mutex<[String]>([])

    var all: [String] { found.withLock { $0 } }

    func add(_ text: String) {
        found.withLock { if $0.count < 20 { $0.append(text) } }
    }
}
