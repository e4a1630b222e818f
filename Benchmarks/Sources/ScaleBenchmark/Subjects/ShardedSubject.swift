// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import Synchronization

/// Dictionaries, each with its own lock; a single one is the minimum that any shared store does.
struct ShardedSubject: Subject {
    let name: String
    private let shards: [Shard]

    init(name: String, shards count: Int, entries: Int) {
        self.name = name
        var parts = [[StoreKey: ByteChunk]](repeating: [:], count: count)
        for part in parts.indices { parts[part].reserveCapacity(entries / count + entries / count / 8) }
        for number in 0..<entries {
            let key = Entry.key(number)
            parts[Self.number(of: key, among: count)][key] = Entry.body(number)
        }
        shards = parts.map(Shard.init)
    }

    func ask(_ asking: Asking, _ places: Range<Int>) async throws -> Int {
        var right = 0
        for place in places {
            let (key, number) = (asking.keys[place], asking.numbers[place])
            let shard = shards[Self.number(of: key, among: shards.count)]
            guard let bytes = shard.bodies.withLock({ $0[key] }) else { continue }
            if Entry.isBody(bytes, of: number) { right += 1 }
        }
        return right
    }

    /// A single shard needs no hash.
    private static func number(of key: StoreKey, among count: Int) -> Int {
        count == 1 ? 0 : Int(UInt(bitPattern: key.hashValue) % UInt(count))
    }

    private final class Shard: Sendable {
        let bodies: Mutex<[StoreKey: ByteChunk]>

        init(_ bodies: [StoreKey: ByteChunk]) {
            self.bodies = Mutex(bodies)
        }
    }
}
