// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
        // An older version of the variant may lie above, and the group there lacks this one at any rate.
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
