// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    internal import HoldfastStorage

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
            case .keyPrefix(let prefix):
                try await mark("prefix", word: prefix)
                count = try await sweep { (start) async throws(StoreError) in
                    try await space.run(.sweepPrefix, with: [prefix, start])
                }
                // Copies of what was found in the meantime are removed too.
                try await mark("none", word: [])
            case .matching(let predicate): count = try await purge(where: predicate, now: now)
            }
            noteRemoved(count)
            // Marked entries are removed by whoever finds them, so no one has the whole count.
            return isCounted(selection) ? count : nil
        }

        private func isCounted(_ selection: PurgeSelection) -> Bool {
            switch selection.form {
            case .all, .tag: false
            case .keyPrefix, .matching: true
            }
        }

        @discardableResult
        private func mark(_ kind: String, word: [UInt8]) async throws(StoreError) -> [UInt8] {
            try await space.run(.mark, with: [Array(kind.utf8), word]).value.bytes ?? []
        }

        private func sweep(
            _ step: (_ start: [UInt8]) async throws(StoreError) -> SharedSpace.Answer
        ) async throws(StoreError) -> Int {
            var (count, start) = (0, Array("-".utf8))
            while true {
                let parts = try await step(start).value.array ?? []
                guard parts.count == 2, let last = parts[1].bytes else { throw SharedSpace.unreadable }
                count += parts[0].integer ?? 0
                if last.isEmpty { return count }
                start = [UInt8(ascii: "(")] + last
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
            var stopped: [[UInt8]] = []
            for row in try await space.run(.writers).value.array ?? [] {
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
            var (count, cursor) = (0, StoreCursor?.none)
            repeat {
                let page = try await list(after: cursor, limit: 200, now: now)
                for listed in page.listed where isSelected(listed.entry) { count += try await take(listed.entry) }
                cursor = page.next
            } while cursor != nil
            // An index that was lost in the meantime was not walked to its end.
            try await mark("none", word: [])
            return count
        }
    }
#endif
