// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastStorage

// Shorthand that the conformance suite and the tests of stores share.

extension SeededGenerator {
    /// Random bytes, eight from each number.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        var words: [UInt64] = []
        words.reserveCapacity((count + 7) / 8)
        while words.count * 8 < count { words.append(next().littleEndian) }
        return words.withUnsafeBytes { Array(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
}

extension StoreKey {
    package init(_ text: String) { self.init(Array(text.utf8)) }
}

extension StoreInstant {
    package static func at(_ milliseconds: some BinaryInteger) -> StoreInstant {
        StoreInstant(milliseconds: Int64(milliseconds))
    }
}

extension EntryDescription {
    package init(_ text: String, uselessAfter: StoreInstant = .distantFuture, tags: Set<String> = []) {
        self.init(metadata: ByteChunk(copying: text.utf8), uselessAfter: uselessAfter, tags: tags)
    }

    package var text: String { String(decoding: metadata, as: UTF8.self) }
}

extension CacheStore {
    package func writer(
        _ key: String,
        variant: String = "",
        description: EntryDescription = EntryDescription("meta"),
        expecting length: Int? = nil,
        now: StoreInstant = .at(0)
    ) async throws(StoreError) -> any EntryWriter {
        try await write(
            StoreKey(key),
            variant: StoreKey(variant),
            description: description,
            expectedLength: length,
            now: now
        )
    }

    @discardableResult
    package func put(
        _ key: String,
        variant: String = "",
        _ body: [UInt8],
        _ description: EntryDescription = EntryDescription("meta"),
        now: StoreInstant = .at(0)
    ) async throws(StoreError) -> StoredEntry {
        let writer = try await writer(key, variant: variant, description: description, expecting: body.count, now: now)
        try await writer.append(ByteChunk(body))
        return try await writer.commit(nil, now: now)
    }

    package func get(_ key: String, now: StoreInstant = .at(0)) async throws(StoreError) -> [StoredEntry] {
        try await entries(for: StoreKey(key), now: now)
    }

    package func wholeBody(of entry: StoredEntry, piece: Int = 50_000) async throws(StoreError) -> [UInt8] {
        try await body(of: entry).whole(piece: piece)
    }

    /// Everything that a list shows, `limit` at a time; an endless list is cut off, far beyond what any law stores.
    package func listed(limit: Int) async throws(StoreError) -> [ListedEntry] {
        var all: [ListedEntry] = []
        var cursor: StoreCursor?
        repeat {
            let page = try await list(after: cursor, limit: limit, now: .at(0))
            all += page.listed
            cursor = page.next
        } while cursor != nil && all.count < 2_000
        return all
    }
}

extension StoredBody {
    package func whole(piece: Int = 50_000) async throws(StoreError) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = try await read(from: bytes.count, upTo: piece)
            if chunk.isEmpty { return bytes }
            bytes += chunk.array
        }
    }
}
