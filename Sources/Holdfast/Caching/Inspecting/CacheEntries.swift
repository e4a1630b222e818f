// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
public import HoldfastStorage

/// The stored responses of a cache, one after another in the store's own order; see ``HTTPCache/entries(_:pageSize:now:)``.
///
/// Each iterator begins anew and holds one page of entries at a time.
public struct CacheEntries: AsyncSequence, Sendable {
    public typealias Element = CacheEntryInfo
    public typealias Failure = StoreError

    let cache: HTTPCache
    let selection: CacheSelection
    let pageSize: Int
    let now: Timestamp
    /// Where the listing begins: an iterator's ``Iterator/cursor`` of an earlier one; nil: at the first entry.
    package var start: StoreCursor?

    public func makeAsyncIterator() -> Iterator {
        Iterator(pages: self, isSelected: cache.predicate(of: selection, now: now))
    }

    /// Goes through the pages of a store.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pages: CacheEntries
        fileprivate let isSelected: @Sendable (StoredEntry) -> Bool
        private var page: ArraySlice<ListedEntry> = []
        /// Where a later listing goes on, once all of the page in hand was taken; nil at the end.
        package private(set) var cursor: StoreCursor?
        /// Whether all of the page in hand was taken.
        package var isAtPageEnd: Bool { page.isEmpty }
        private var isAtEnd = false

        fileprivate init(pages: CacheEntries, isSelected: @escaping @Sendable (StoredEntry) -> Bool) {
            self.pages = pages
            self.isSelected = isSelected
            cursor = pages.start
        }

        /// The next entry; nil at the end.
        ///
        /// - Throws: `.cancelled` once the task is cancelled, and what the store fails with. After an error there are no more.
        public mutating func next() async throws(StoreError) -> CacheEntryInfo? {
            while true {
                while let listed = page.popFirst() {
                    if let info = info(of: listed) { return info }
                }
                if isAtEnd { return nil }
                if Task.isCancelled {
                    isAtEnd = true
                    throw StoreError(.cancelled, "The task was cancelled while it listed the store; list it again.")
                }
                try await turn()
            }
        }

        private mutating func turn() async throws(StoreError) {
            do throws(StoreError) {
                let next = try await pages.cache.store.list(
                    after: cursor,
                    limit: pages.pageSize,
                    now: StoreInstant(pages.now)
                )
                page = next.listed[...]
                // A store that goes on from where it was would be listed without end.
                isAtEnd = next.next == nil || next.next == cursor
                cursor = next.next
            } catch {
                isAtEnd = true
                throw error
            }
        }

        /// What is told of an entry; nil where it is not selected, or no response.
        private func info(of listed: ListedEntry) -> CacheEntryInfo? {
            let (entry, options) = (listed.entry, pages.cache.options)
            // Read past the table of decoded responses, from which a long listing would drive out all that is in use.
            guard !SearchVarianceKeys.isOne(entry.key.bytes),
                let stored = StoredResponse(decoding: entry.description.metadata, targetedFields: options.targets)
            else { return nil }
            let info = CacheEntryInfo(
                entry,
                stored,
                options,
                hits: listed.hits,
                storedBytes: listed.bytes,
                now: pages.now
            )
            switch pages.selection.form {
            case .matching(let predicate): return predicate(info) ? info : nil
            case .olderThan(let age): return info.age > age.wholeSeconds ? info : nil
            case .all, .uri, .prefix, .tag, .principal, .credentials: return isSelected(entry) ? info : nil
            }
        }
    }
}
