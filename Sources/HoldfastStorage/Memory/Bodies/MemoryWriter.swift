// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Writes one entry into a ``MemoryStore``.
final class MemoryWriter: EntryWriter {
    private let store: MemoryStore
    private let id: UInt64
    private let body: GrowingBody

    init(store: MemoryStore, id: UInt64) {
        self.store = store
        self.id = id
        body = GrowingBody { [weak store] in store?.countFollowed($0) }
    }

    deinit {
        abandon()
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        do {
            try store.reserve(bytes.count, for: id)
        } catch {
            abandon()
            throw error
        }
        body.append(bytes)
    }

    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        // Followers have the whole body whether or not it may be stored: it is what they asked for.
        let whole = body.finish()
        do {
            return try store.commit(id, description, body: whole, now: now)
        } catch {
            store.abandon(id)
            throw error
        }
    }

    func abandon() {
        store.abandon(id)
        body.abandon()
    }

    func follow() -> any StoredBody {
        body
    }
}
