// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A body of the lower tier that reports when a reader has read all of it.
final class PromotingBody: StoredBody {
    private let body: any StoredBody
    private let bodyLength: Int
    /// Called once, with the bytes if one read returned all of them.
    private let onWhole: @Sendable (ByteChunk?) -> Void
    private let hasBegun = Atomic(false)
    private let hasTold = Atomic(false)

    init(_ body: any StoredBody, length: Int, onWhole: @escaping @Sendable (ByteChunk?) -> Void) {
        self.body = body
        bodyLength = length
        self.onWhole = onWhole
    }

    var length: Int? { body.length }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        let chunk = try await body.read(from: offset, upTo: count)
        if offset <= 0 {
            if chunk.count == bodyLength {
                tell(chunk)
            } else {
                hasBegun.store(true, ordering: .relaxed)
            }
        } else if hasBegun.load(ordering: .relaxed), offset + chunk.count == bodyLength {
            tell(nil)
        }
        return chunk
    }

    private func tell(_ bytes: ByteChunk?) {
        if !hasTold.exchange(true, ordering: .relaxed) { onWhole(bytes) }
    }
}

/// A body of an upper tier that is not in memory; if reading it fails, the lower tier's body continues.
final class FallbackBody: StoredBody {
    private let body: any StoredBody
    private let entry: StoredEntry
    private let lower: any CacheStore
    private let spare = Mutex<(any StoredBody)?>(nil)

    init(_ body: any StoredBody, of entry: StoredEntry, below lower: any CacheStore) {
        self.body = body
        self.entry = entry
        self.lower = lower
    }

    var length: Int? { entry.bodyLength }
    var bytesInMemory: ByteChunk? { nil }

    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk {
        if let spare = spare.withLock({ $0 }) { return try await spare.read(from: offset, upTo: count) }
        do throws(StoreError) {
            return try await body.read(from: offset, upTo: count)
        } catch {
            if error.code == .cancelled { throw error }
            let opened = try await lower.body(of: entry)
            spare.withLock { $0 = opened }
            return try await opened.read(from: offset, upTo: count)
        }
    }
}

/// Writes one entry into the lower tier of a ``TieredStore``.
final class TieredWriter: EntryWriter {
    private let writer: any EntryWriter
    private let key: StoreKey
    private let store: TieredStore

    init(_ writer: any EntryWriter, of key: StoreKey, in store: TieredStore) {
        self.writer = writer
        self.key = key
        self.store = store
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        try await writer.append(bytes)
    }

    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        // The upper tier may have an older version of the variant, and its group lacks this one in any case.
        try await store.change(key) { () async throws(StoreError) in
            try await writer.commit(description, now: now)
        }
    }

    func abandon() {
        writer.abandon()
    }

    func follow() -> any StoredBody {
        writer.follow()
    }
}
