// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage
    internal import Synchronization

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
            _ = try await take(entry)
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
        func take(_ entry: StoredEntry) async throws(StoreError) -> Int {
            try checkOpen()
            let answer = try await space.run(
                .remove,
                with: SharedEntries.name(of: entry),
                "\(entry.version.number)"
            )
            noteRemoved(answer.value.integer)
            return answer.value.integer ?? 0
        }

        func noteRemoved(_ count: Int?) {
            guard let count, count > 0 else { return }
            counted.withLock { $0.entriesRemoved += count }
        }
    }
#endif
