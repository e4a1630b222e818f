// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Stores under many tasks at once", .timeLimit(.minutes(10)))
struct StressTests {
    /// A body by which its entry can be told apart from every other one.
    private static func body(_ number: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: number)
        return generator.bytes(Int(number % 5) * 30_000)
    }

    private static func check(_ store: any CacheStore, _ entry: StoredEntry) async throws {
        do {
            let number = try #require(UInt64(entry.description.text))
            let bytes = try await store.wholeBody(of: entry)
            #expect(bytes == body(number))
        } catch let error as StoreError {
            #expect(error.code == .superseded, "\(error)")
        }
    }

    private static func write(_ store: any CacheStore, _ key: String, step: Int, number: UInt64) async throws {
        let bytes = body(number)
        let writer = try await store.write(
            StoreKey(key),
            variant: StoreKey("\(step % 3)"),
            description: EntryDescription("\(number)", tags: ["t\(step % 4)"]),
            expectedLength: bytes.count,
            now: .at(Int64(step))
        )
        let follower = writer.follow()
        let reader = Task { try await follower.whole() }
        let half = bytes.count / 2
        try await writer.append(ByteChunk(bytes)[0..<half])
        try await writer.append(ByteChunk(bytes)[half..<bytes.count])
        if step % 7 == 0 {
            writer.abandon()
            _ = try? await reader.value
        } else {
            _ = try await writer.commit(nil, now: .at(Int64(step)))
            let read = try await reader.value
            #expect(read == bytes)
        }
    }

    private static func change(_ store: any CacheStore, _ key: String, pins: Bool) async throws {
        guard let entry = store.peek(StoreKey(key), now: .at(0))?.first else { return }
        try await store.setPinned(pins, entry)
        try await store.replaceDescription(of: entry, with: entry.description, now: .at(0))
    }

    private static func work(_ store: any CacheStore, seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for step in 0..<60 {
            let key = "key\(Int.random(in: 0..<4, using: &generator))"
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...3:
                let number = seed &* 1_000 &+ UInt64(step)
                let code = await errorCode { try await write(store, key, step: step, number: number) }
                #expect([nil, .superseded, .noSpace, .abandoned].contains(code))
            case 4...6:
                for entry in try await store.get(key) { try await check(store, entry) }
            case 7:
                try await store.invalidate(StoreKey(key))
            case 8:
                try await store.purge(.matching { $0.version.number % 7 == 0 }, now: .at(0))
            default:
                let code = await errorCode { try await change(store, key, pins: step % 2 == 0) }
                #expect([nil, .noSpace].contains(code))
            }
            let statistics = store.statistics
            #expect(statistics.bytesUsed <= statistics.capacity)
        }
    }

    @Test("No task sees a torn entry and the capacity holds", arguments: StoreMaker.all)
    func stress(maker: StoreMaker) async throws {
        try await maker.with(capacity: 800_000) { fixture in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for seed in 0..<8 { group.addTask { try await Self.work(fixture.store, seed: UInt64(seed)) } }
                try await group.waitForAll()
            }
            #expect(fixture.heldBytes() <= 800_000)
        }
    }
}
