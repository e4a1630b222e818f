// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// Entries in Redis, as they are: no copies in memory, and every failure of the server is an error.
    ///
    /// Related changes happen in one script. An entry is named after its key and variant; a body is stored in chunks under its
    /// own name, so that the bytes of two versions never mix.
    final class SharedEntries: CacheStore {
        /// Versions of the server begin far above this, to distinguish them from those of a store in memory.
        static let firstVersion = 1 << 40

        let space: SharedSpace
        let capacity: Int
        let releases = PendingReleases()
        let counted = Mutex(StoreStatistics())
        let isClosed = Atomic(false)
        private let uploads = Mutex<[ObjectIdentifier: WeakUpload]>([:])

        /// Creates a store for the space's prefix; nothing is requested before ``open()``.
        init(_ space: SharedSpace, capacity: Int) {
            self.space = space
            self.capacity = max(0, capacity)
        }

        var secret: [UInt8] { space.secret }

        /// Learns the secret and the totals; does nothing once they are known.
        func open() async throws(StoreError) {
            if !space.knowsSecret { try await agree() }
        }

        /// Checks whether the server does what a store needs.
        func agree() async throws(StoreError) {
            try checkOpen()
            if let text = try await space.run(.agree).untold { throw RedisReply.refusal(for: text) }
        }

        /// Removes everything, if something could not be removed on its own.
        func renew() async throws(StoreError) {
            try checkOpen()
            _ = try await space.run(.renew)
        }

        func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

        func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
            try checkOpen()
            let answer = try await space.run(.look, with: [Array(SharedSpace.digest(of: key).utf8), key.bytes])
            let found = (answer.value.array ?? []).compactMap { shown in
                shown.array.flatMap { EntryWords.entry($0, of: key)?.entry }
            }
            counted.withLock { counted in
                counted.lookups += 1
                if !found.isEmpty { counted.lookupsFound += 1 }
            }
            return found
        }

        func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody {
            try checkOpen()
            let answer = try await space.run(.open, with: SharedEntries.name(of: entry), "\(entry.version.number)")
            guard let parts = answer.value.array, parts.count == 3, let name = parts[0].bytes,
                let bytes = parts[2].bytes
            else {
                throw StoreError(.superseded, "The entry was replaced or removed; look the key up again.")
            }
            let onRead = onRead
            if name.isEmpty {
                guard bytes.count == entry.bodyLength else { throw SharedSpace.unreadable }
                return InlineBody(bytes: ByteChunk(bytes), onRead: onRead)
            }
            return ChunkedBody(
                String(decoding: name, as: UTF8.self),
                length: entry.bodyLength,
                in: space,
                onRead: onRead
            )
        }

        func write(
            _ key: StoreKey,
            variant: StoreKey,
            description: EntryDescription,
            expectedLength: Int?,
            now: StoreInstant
        ) async throws(StoreError) -> any EntryWriter {
            try checkOpen()
            let kept = EntryWords.bounded(description)
            guard let size = EntryWords.size(key, variant: variant, description: kept, body: expectedLength ?? 0),
                size <= capacity
            else {
                throw SharedEntries.tooLarge
            }
            await releases.settle()
            let upload = BodyUpload(
                SharedSpace.name() + SharedSpace.name(),
                in: space,
                releases: releases,
                onRead: onRead
            )
            let words = [
                Array(upload.writer.utf8), Array(SharedSpace.digest(of: key).utf8), key.bytes, variant.bytes,
            ]
            let age = description.requestedAt.map {
                Duration.milliseconds(min(max(0, now.milliseconds - $0.milliseconds), 900_000))
            }
            let start = ContinuousClock.now
            let answer = try await space.run(
                .begin,
                with: words + EntryWords.words(of: kept) + [Array(upload.name.utf8)]
            )
            guard let parts = answer.value.array, parts.count == 2, let serverTime = parts[1].integer else {
                throw StoreError(.superseded, "The store has a new secret, and the key was made with the old one.")
            }
            note(upload)
            // By the server's clock, and never too late: the time of the reply is subtracted as well.
            let askedFor = age.map { serverTime - Int(($0 + (.now - start)) / .milliseconds(1)) - 1 }
            return SharedWriter(upload, key: key, variant: variant, description: kept, askedFor: askedFor, of: self)
        }

        var statistics: StoreStatistics {
            var statistics = counted.withLock { $0 }
            let totals = space.totals
            statistics.entryCount = totals.count
            statistics.bytesUsed = totals.used
            statistics.entriesEvicted = totals.evicted
            statistics.capacity = capacity
            return statistics
        }

        func close() async {
            guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
            for upload in uploads.withLock({ $0.values.compactMap(\.upload) }) { upload.abandon() }
            await releases.settle()
            space.client.close()
        }

        // MARK: For writers

        var onRead: @Sendable (Int) -> Void {
            { [weak self] count in self?.counted.withLock { $0.bytesRead &+= count } }
        }

        func checkOpen() throws(StoreError) {
            if isClosed.load(ordering: .acquiring) {
                throw StoreError(.closed, "The store is closed; open it again.")
            }
        }

        private func note(_ upload: BodyUpload) {
            uploads.withLock { uploads in
                uploads = uploads.filter { $0.value.upload != nil }
                uploads[ObjectIdentifier(upload)] = WeakUpload(upload: upload)
            }
        }

        func forget(_ upload: BodyUpload) {
            uploads.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(upload)) }
        }

        static func name(of entry: StoredEntry) -> String { SharedSpace.name(of: entry.key, entry.variant) }

        static let tooLarge = StoreError(
            .tooLarge,
            "The entry is larger than the store may hold; raise the capacity, or do not store it."
        )
        static let full = StoreError(
            .noSpace,
            "The store is full of pinned entries and unfinished writes; try again later."
        )
    }

    /// An upload that is known as long as someone else holds it.
    struct WeakUpload: Sendable {
        weak let upload: BodyUpload?
    }
#endif
