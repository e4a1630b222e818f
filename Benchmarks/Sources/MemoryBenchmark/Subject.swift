// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import Synchronization

/// What holds entries in memory and answers for them.
protocol Subject: Sendable {
    /// Its name in the figures.
    var name: String { get }

    /// Asks for entries one after another.
    ///
    /// - Returns: how many were there whole and right, as far as the first byte of a body tells.
    func ask(_ population: Population, _ order: [Int32]) async throws -> Int
}

/// The memory store: a look-up and the opening of the body, as a cache does for a hit.
struct HoldfastSubject: Subject {
    let name = "holdfast"
    private let store: MemoryStore

    init(_ population: Population) async throws {
        // Room for all, so that no look-up misses.
        store = MemoryStore(capacity: population.keys.count * 4 * Population.bodyLength + (64 << 20))
        for (number, key) in population.keys.enumerated() {
            let writer = try await store.write(
                key,
                variant: StoreKey([]),
                description: EntryDescription(metadata: ByteChunk([UInt8](repeating: 7, count: 256))),
                expectedLength: Population.bodyLength,
                now: Population.now
            )
            try await writer.append(ByteChunk(Population.body(number)))
            try await writer.commit(nil, now: Population.now)
        }
    }

    func ask(_ population: Population, _ order: [Int32]) async throws -> Int {
        var right = 0
        for number in order {
            let number = Int(number)
            guard let entry = store.peek(population.keys[number], now: Population.now)?.first else { continue }
            guard let bytes = try await store.body(of: entry).bytesInMemory else { continue }
            if bytes.count == Population.bodyLength, bytes[0] == UInt8(truncatingIfNeeded: number) { right += 1 }
        }
        return right
    }
}

/// A dictionary under one lock: the least that any shared store does.
final class DictionarySubject: Subject {
    let name = "dictionary"
    private let bodies: Mutex<[StoreKey: ByteChunk]>

    init(_ population: Population) {
        var bodies: [StoreKey: ByteChunk] = [:]
        for (number, key) in population.keys.enumerated() { bodies[key] = ByteChunk(Population.body(number)) }
        self.bodies = Mutex(bodies)
    }

    func ask(_ population: Population, _ order: [Int32]) async throws -> Int {
        var right = 0
        for number in order {
            let number = Int(number)
            let key = population.keys[number]
            guard let bytes = bodies.withLock({ $0[key] }) else { continue }
            if bytes.count == Population.bodyLength, bytes[0] == UInt8(truncatingIfNeeded: number) { right += 1 }
        }
        return right
    }
}
