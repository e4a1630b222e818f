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

        /// Learns the secret and the totals, and whether the user may do all that a store does; does nothing once they are known.
        func open() async throws(StoreError) {
            if space.knowsSecret { return }
            try checkOpen()
            _ = try await space.run(.tryAll)
            try await agree()
        }

        /// Checks whether the server does what a store needs.
        func agree() async throws(StoreError) {
            if let text = try await checkWrites().untold { throw RedisReply.refusal(for: text) }
        }

        /// Checks whether the server accepts changes, whether or not it publishes messages.
        @discardableResult
        func checkWrites() async throws(StoreError) -> SharedSpace.Answer {
            try checkOpen()
            return try await space.run(.agree)
        }

        /// Removes everything, if something could not be removed on its own.
        func renew() async throws(StoreError) {
            try checkOpen()
            _ = try await space.run(.renew)
        }

        func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]? { nil }

        func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry] {
            let found = try await variants(of: key)
            counted.withLock { counted in
                counted.lookups += 1
                if !found.isEmpty { counted.lookupsFound += 1 }
            }
            return found
        }

        private func variants(of key: StoreKey) async throws(StoreError) -> [StoredEntry] {
            try checkOpen()
            let answer = try await space.run(.look, with: [Array(SharedSpace.digest(of: key).utf8), key.bytes])
            return (answer.value.array ?? []).compactMap { shown in
                shown.array.flatMap { EntryWords.entry($0, of: key)?.entry }
            }
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

    /// Changes of existing entries.
    extension SharedEntries {
        @discardableResult
        func replaceDescription(
            of entry: StoredEntry,
            with description: EntryDescription,
            now: StoreInstant
        ) async throws(StoreError) -> StoredEntry? {
            try checkOpen()
            let kept = EntryWords.bounded(description)
            guard
                let size = EntryWords.size(
                    entry.key,
                    variant: entry.variant,
                    description: kept,
                    body: entry.bodyLength
                ), size <= capacity
            else {
                throw SharedEntries.tooLarge
            }
            let words =
                [Array(SharedEntries.name(of: entry).utf8), Array("\(entry.version.number)".utf8)]
                + EntryWords.words(of: kept)
                + ["\(size)", "\(capacity)", "\(now.milliseconds)"].map { Array($0.utf8) }
            let answer = try await space.run(.refresh, with: words)
            guard let parts = answer.value.array, parts.count == 2, let version = parts[0].integer else {
                if answer.word == "full" { throw SharedEntries.full }
                return nil
            }
            return StoredEntry(
                key: entry.key,
                variant: entry.variant,
                version: StoredEntry.Version(number: UInt64(max(0, version))),
                description: kept,
                bodyLength: entry.bodyLength,
                storedAt: entry.storedAt,
                isPinned: parts[1].integer == 1
            )
        }

        func remove(_ entry: StoredEntry) async throws(StoreError) {
            noteRemoved(try await take(entry))
        }

        func invalidate(_ key: StoreKey) async throws(StoreError) {
            try checkOpen()
            let words = [
                Array(SharedSpace.digest(of: key).utf8), key.bytes,
            ]
            noteRemoved(try await space.run(.invalidate, with: words).value.integer)
        }

        @discardableResult
        func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool {
            try checkOpen()
            let answer = try await space.run(
                .pin,
                with: SharedEntries.name(of: entry),
                "\(entry.version.number)",
                pinned ? "1" : "0",
                "\(capacity)"
            )
            return answer.value.integer == 1
        }

        func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage {
            try checkOpen()
            var listed: [ListedEntry] = []
            let limit = min(max(1, limit), 500)
            var start = cursor.map { [UInt8(ascii: "(")] + $0.bytes } ?? Array("-".utf8)
            while true {
                let answer = try await space.run(.list, with: [start, Array("\(limit - listed.count)".utf8)])
                let rows = answer.value.array ?? []
                for row in rows {
                    guard let parts = row.array, parts.count == 2, let shown = parts[1].array,
                        let found = EntryWords.entry(shown, of: nil)
                    else { continue }
                    listed.append(ListedEntry(entry: found.entry, hits: nil, bytes: found.bytes))
                }
                guard rows.count > 0, let last = rows.last?.array?.first?.bytes else {
                    return StorePage(listed: listed, next: nil)
                }
                if listed.count >= limit { return StorePage(listed: listed, next: StoreCursor(last)) }
                start = [UInt8(ascii: "(")] + last
            }
        }

        /// - Returns: how many entries were removed, 1 or 0.
        private func take(_ entry: StoredEntry) async throws(StoreError) -> Int {
            try checkOpen()
            let words = [
                Array(SharedEntries.name(of: entry).utf8), Array("\(entry.version.number)".utf8), entry.key.bytes,
            ]
            let answer = try await space.run(.remove, with: words)
            return answer.value.integer ?? 0
        }

        private func noteRemoved(_ count: Int?) {
            guard let count, count > 0 else { return }
            counted.withLock { $0.entriesRemoved += count }
        }
    }

    /// Purges: a mark that takes effect at once for all processes, after which the space is freed, some hundred entries at a
    /// time.
    extension SharedEntries {
        @discardableResult
        func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int? {
            try checkOpen()
            let count: Int
            switch selection.form {
            case .all:
                try await mark("all", word: [])
                count = try await sweep { (start) async throws(StoreError) in try await space.run(.sweep, with: [start])
                }
            case .tag(let tag): count = try await purge(tag: Array(tag.utf8))
            case .keyPrefix(let prefix): count = try await purge(prefix: prefix)
            case .matching(let predicate): count = try await purge(where: predicate, now: now)
            }
            noteRemoved(count)
            // Marked entries are removed by anyone who finds them, so no one has the whole count.
            return isCounted(selection) ? count : nil
        }

        private func isCounted(_ selection: PurgeSelection) -> Bool {
            switch selection.form {
            case .all, .tag: false
            case .keyPrefix, .matching: true
            }
        }

        @discardableResult
        private func mark(_ kind: String, word: [UInt8], group: String = "") async throws(StoreError) -> [UInt8] {
            try await space.run(.mark, with: [Array(kind.utf8), word, Array(group.utf8)]).value.bytes ?? []
        }

        private func purge(prefix: [UInt8]) async throws(StoreError) -> Int {
            // Each unsafe request does this: for one group, only its part of the index is walked, and only its copies go.
            let group = SharedSpace.group(ofPrefix: prefix)
            let found = try await mark("prefix", word: prefix, group: group ?? "")
            // Nothing of the group was there, and whoever was writing it is stopped: nobody can have copied it since.
            if group != nil, found.isEmpty { return 0 }
            let end = Array((group.map { "(\($0)g" } ?? "+").utf8)
            let count = try await sweep(from: group.map { "[\($0)" } ?? "-") { (start) async throws(StoreError) in
                try await space.run(.sweepPrefix, with: [prefix, start, end])
            }
            // Copies of what was found in the meantime are removed too; those who write by now have asked since.
            try await mark("none", word: prefix, group: group ?? "")
            return count
        }

        private func sweep(
            from first: String = "-",
            _ step: (_ start: [UInt8]) async throws(StoreError) -> SharedSpace.Answer
        ) async throws(StoreError) -> Int {
            var (count, start) = (0, Array(first.utf8))
            while true {
                let parts = try await step(start).value.array ?? []
                guard parts.count == 2, let next = parts[1].bytes else { throw SharedSpace.unreadable }
                count += parts[0].integer ?? 0
                if next.isEmpty { return count }
                start = next
            }
        }

        private func purge(tag: [UInt8]) async throws(StoreError) -> Int {
            let set = try await mark("tag", word: tag)
            var (count, hasMore) = (0, !set.isEmpty)
            while hasMore {
                let parts = try await space.run(.sweepTag, with: [set]).value.array ?? []
                guard parts.count == 2 else { throw SharedSpace.unreadable }
                count += parts[0].integer ?? 0
                hasMore = parts[1].integer == 1
            }
            return count
        }

        private func purge(
            where isSelected: @Sendable (StoredEntry) -> Bool,
            now: StoreInstant
        ) async throws(StoreError) -> Int {
            try await mark("none", word: [])
            let writers = (try await space.run(.writers).value.array ?? []).compactMap(\.bytes)
            for start in stride(from: 0, to: writers.count, by: 1_000) {
                let page = Array(writers[start..<min(writers.count, start + 1_000)])
                var stopped: [[UInt8]] = []
                for row in try await space.run(.writing, with: page).value.array ?? [] {
                    let words = (row.array ?? []).compactMap(\.bytes)
                    guard words.count == 6 else { continue }
                    let entry = StoredEntry(
                        key: StoreKey(words[1]),
                        variant: StoreKey(words[2]),
                        version: .beingWritten,
                        description: EntryWords.description(words[3], uselessAfter: words[4], tags: words[5]),
                        bodyLength: 0,
                        storedAt: now
                    )
                    if isSelected(entry) { stopped.append(words[0]) }
                }
                if !stopped.isEmpty { _ = try await space.run(.stop, with: stopped) }
            }
            var (count, cursor) = (0, StoreCursor?.none)
            repeat {
                let page = try await list(after: cursor, limit: 200, now: now)
                for listed in page.listed { count += try await take(listed.entry, if: isSelected) }
                cursor = page.next
            } while cursor != nil
            // An index that was lost in the meantime was not walked to its end.
            try await mark("none", word: [])
            return count
        }

        /// Removes an entry, even if it is freshened between the check and the removal.
        private func take(
            _ entry: StoredEntry,
            if isSelected: @Sendable (StoredEntry) -> Bool
        ) async throws(StoreError) -> Int {
            var found: StoredEntry? = entry
            // Each round after the first is due to another change; an entry that is stored again and again need not be removed.
            for _ in 0..<256 {
                guard let entry = found, isSelected(entry) else { return 0 }
                let count = try await take(entry)
                if count > 0 { return count }
                found = try await variants(of: entry.key).first { $0.variant == entry.variant }
            }
            return 0
        }
    }
#endif
