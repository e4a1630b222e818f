// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// The memory store: a look-up and the body, as a cache does for a hit.
struct StoreSubject: Subject {
    let name = "holdfast"
    private let store: MemoryStore

    /// Fills a store that is large enough for all.
    init(entries: Int) async throws {
        store = MemoryStore(capacity: entries * 1_200 + (64 << 20))
        let metadata = ByteChunk([UInt8](repeating: 7, count: 16))
        for number in 0..<entries {
            let writer = try await store.write(
                Entry.key(number),
                variant: StoreKey([]),
                description: EntryDescription(metadata: metadata),
                expectedLength: Entry.bodyLength,
                now: Entry.now
            )
            try await writer.append(Entry.body(number))
            try await writer.commit(nil, now: Entry.now)
        }
    }

    func ask(_ asking: Asking, _ places: Range<Int>) async throws -> Int {
        var right = 0
        for place in places {
            let (key, number) = (asking.keys[place], asking.numbers[place])
            guard let entry = store.peek(key, now: Entry.now)?.first, let bytes = store.peekBody(of: entry) else {
                continue
            }
            if Entry.isBody(bytes, of: number) { right += 1 }
        }
        return right
    }
}
