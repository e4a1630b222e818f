// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

    /// Writes one entry to Redis.
    final class SharedWriter: EntryWriter {
        private let upload: BodyUpload
        private let key: StoreKey
        private let variant: StoreKey
        private let description: EntryDescription
        /// When the entry was requested, in milliseconds of the server's clock; nil: unknown.
        private let askedFor: Int?
        private let store: SharedEntries
        private let isOver = Atomic(false)

        init(
            _ upload: BodyUpload,
            key: StoreKey,
            variant: StoreKey,
            description: EntryDescription,
            askedFor: Int?,
            of store: SharedEntries
        ) {
            self.upload = upload
            self.key = key
            self.variant = variant
            self.description = description
            self.askedFor = askedFor
            self.store = store
        }

        deinit {
            abandon()
        }

        func append(_ bytes: ByteChunk) async throws(StoreError) {
            try check()
            guard let size = EntryWords.size(key, variant: variant, description: description, body: upload.count),
                size <= store.capacity - bytes.count
            else {
                abandon()
                throw SharedEntries.tooLarge
            }
            try await upload.append(bytes, by: send)
        }

        @discardableResult
        func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry {
            try check()
            let kept = description.map(EntryWords.bounded) ?? self.description
            let length = upload.count
            guard let size = EntryWords.size(key, variant: variant, description: kept, body: length),
                size <= store.capacity
            else {
                abandon()
                throw SharedEntries.tooLarge
            }
            isOver.store(true, ordering: .releasing)
            do throws(StoreError) {
                var inline: [UInt8] = []
                if length <= BodyUpload.inlineLength {
                    inline = upload.tail
                } else {
                    try await upload.finish(send)
                }
                let isFollowed = upload.isFollowed
                let entry = try await publish(
                    kept,
                    length: length,
                    size: size,
                    inline: inline,
                    isFollowed: isFollowed,
                    now: now
                )
                upload.handOver(isOpen: isFollowed)
                store.forget(upload)
                store.counted.withLock { counted in
                    counted.entriesWritten += 1
                    counted.bytesWritten += length
                }
                return entry
            } catch {
                if error.code == .superseded {
                    // Followers may get all bytes, although nothing is stored; the store still knows the upload, to release it.
                    upload.end()
                } else {
                    upload.abandon()
                    store.forget(upload)
                }
                throw error
            }
        }

        func abandon() {
            guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
            upload.abandon()
            store.forget(upload)
        }

        /// A follower that begins after the commit can read only while the entry is there.
        func follow() -> any StoredBody {
            upload.noteFollower()
            return upload
        }

        private func check() throws(StoreError) {
            try store.checkOpen()
            if isOver.load(ordering: .acquiring) { throw BodyUpload.abandoned }
        }

        private func send(_ number: Int, bytes: [UInt8]) async throws(StoreError) {
            await store.releases.settle()
            let words = [
                Array(upload.writer.utf8), Array(upload.name.utf8), Array("\(number)".utf8), bytes,
                Array("\(store.capacity)".utf8), Array("0".utf8),
            ]
            switch try await store.space.run(.chunk, with: words).word {
            case "full": throw SharedEntries.full
            case "gone": throw BodyUpload.lost
            default: break
            }
        }

        private func publish(
            _ description: EntryDescription,
            length: Int,
            size: Int,
            inline: [UInt8],
            isFollowed: Bool,
            now: StoreInstant
        ) async throws(StoreError) -> StoredEntry {
            await store.releases.settle()
            let space = store.space
            let words =
                [Array(upload.writer.utf8), Array(SharedSpace.name(of: key, variant).utf8)]
                + EntryWords.words(of: description) + [Array("\(length)".utf8), Array("\(size)".utf8), inline]
                + [
                    "\(store.capacity)", "\(now.milliseconds)", "\(max(0, askedFor ?? 0))", "\(isFollowed ? 1 : 0)",
                ]
                .map { Array($0.utf8) }
            let answer = try await space.run(.commit, with: words)
            guard let parts = answer.value.array, parts.count == 3, let version = parts[1].integer else {
                if answer.word == "full" { throw SharedEntries.full }
                throw StoreError(
                    .superseded,
                    "The key was invalidated or purged while the entry was being requested or written."
                )
            }
            return StoredEntry(
                key: key,
                variant: variant,
                version: StoredEntry.Version(number: UInt64(max(0, version))),
                description: description,
                bodyLength: length,
                storedAt: now,
                isPinned: parts[2].integer == 1
            )
        }
    }
#endif
