// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Writes one entry into a ``DiskStore``.
final class DiskWriter: EntryWriter {
    private let engine: DiskEngine
    private let id: UInt64
    private let identity: EntryIdentity
    private let key: StoreKey
    private let variant: StoreKey
    private let description: EntryDescription
    /// The last order before it began.
    private let since: UInt64
    private let body: GrowingDiskBody
    /// Bytes of key, variant and description, which count towards the size of the entry.
    private let overhead: Int
    private let isOver = Atomic<Bool>(false)

    init(
        engine: DiskEngine,
        id: UInt64,
        identity: EntryIdentity,
        key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        since: UInt64,
        overhead: Int
    ) {
        self.engine = engine
        self.id = id
        self.identity = identity
        self.key = key
        self.variant = variant
        self.description = description
        self.since = since
        self.overhead = overhead
        body = GrowingDiskBody(engine: engine)
    }

    deinit {
        abandon()
    }

    func append(_ bytes: ByteChunk) async throws(StoreError) {
        do throws(StoreError) {
            try engine.checkOpen()
            if isOver.load(ordering: .acquiring) { throw DiskEngine.ended }
            let limit = engine.maximumEntrySize - overhead
            guard bytes.count <= limit - body.count else { throw engine.tooLarge }
            var offset = 0
            repeat {
                let end = min(bytes.count, offset + GrowingDiskBody.step)
                if body.append(bytes[offset..<end]) { try await body.settle(isEnd: false) }
                offset = end
            } while offset < bytes.count
        } catch {
            abandon()
            throw error
        }
    }

    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
        // Followers have the whole body whether or not it may be stored: it is what they asked for.
        body.finish()
        do throws(StoreError) {
            try engine.checkOpen()
            if isOver.load(ordering: .acquiring) { throw DiskEngine.ended }
            var place = body.place
            if place == nil {
                try await body.settle(isEnd: true)
                place = body.place
            }
            guard let place else { throw DiskEngine.ended }
            let draft = EntryDraft(
                key: key,
                variant: variant,
                identity: identity,
                description: description?.kept ?? self.description,
                body: place,
                storedAt: now,
                version: nil
            )
            if description != nil {
                let size = draft.bodyLength + engine.size(key, variant, draft.description)
                guard size <= engine.maximumEntrySize else { throw engine.tooLarge }
            }
            let stored = try await engine.store(draft, isPinned: nil, body: body, .commit(writer: id, since: since))
            guard let stored else { throw DiskEngine.superseded }
            isOver.store(true, ordering: .releasing)
            if draft.hasBlob { body.letGo() }
            return stored
        } catch {
            abandon()
            throw error
        }
    }

    func abandon() {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        engine.index.shard(of: identity.primary).state.withLock { shard in
            _ = shard.writers.end(id)
        }
        body.abandon()
    }

    func follow() -> any StoredBody {
        body
    }
}
