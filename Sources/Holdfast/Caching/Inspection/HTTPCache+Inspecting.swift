// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage

/// Inspecting a cache: listing, verifying and compacting its contents.
extension HTTPCache {
    /// Lists stored responses, without reading their bodies.
    ///
    /// Looks at every entry of the store, a page at a time, so that memory use does not depend on how much is stored. The store
    /// may be used meanwhile: an entry that stays is listed once; one that is added or removed, once or not at all. Listing
    /// does not count as a hit and does not change the order of eviction. Entries that the cache cannot use (of another format)
    /// are left out.
    ///
    /// - Parameters:
    ///   - selection: which responses; all by default.
    ///   - pageSize: entries held at a time; 256 by default, at least 1.
    ///   - now: the time used to compute ages; the system's by default.
    /// - Returns: a sequence whose iteration throws `StoreError`; `.cancelled` soon after the task is cancelled.
    public func entries(
        _ selection: CacheSelection = .all,
        pageSize: Int = 256,
        now: Timestamp = SystemClock().timestamp
    ) -> CacheEntries {
        CacheEntries(cache: self, selection: selection, pageSize: max(1, pageSize), now: now)
    }

    /// Reads and checks everything that is stored; see `InspectableStore.verify(_:)`.
    ///
    /// - Parameter progress: is called with the progress, from any thread; nothing by default.
    /// - Throws: `StoreError`: `.badConfiguration` if the store has no such operation; `.cancelled`, `.closed`, `.io`.
    public func verify(
        progress: @escaping @Sendable (VerificationProgress) -> Void = { _ in }
    ) async throws(StoreError) -> VerificationReport {
        try await inspectable.verify(progress)
    }

    /// Frees space that is no longer needed; see `InspectableStore.compact()`.
    ///
    /// - Throws: as ``verify(progress:)``, and `.noSpace`.
    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        try await inspectable.compact()
    }

    private var inspectable: any InspectableStore {
        get throws(StoreError) {
            if let store = store as? any InspectableStore { return store }
            throw StoreError(
                .badConfiguration,
                "A \(type(of: store)) can be neither verified nor compacted; make it conform to InspectableStore."
            )
        }
    }
}

extension VerificationReport.Damage {
    /// The URI of the damaged response; nil if it is unknown.
    public var target: TargetURI? {
        key.flatMap { CacheKey.Parts(framed: $0.bytes) }.flatMap { try? TargetURI($0.target) }
    }
}

/// The stored responses of a cache, one after another in the store's own order; see ``HTTPCache/entries(_:pageSize:now:)``.
///
/// Each iterator starts from the beginning and holds one page of entries at a time.
public struct CacheEntries: AsyncSequence, Sendable {
    public typealias Element = CacheEntryInfo
    public typealias Failure = StoreError

    let cache: HTTPCache
    let selection: CacheSelection
    let pageSize: Int
    let now: Timestamp
    /// Where the listing begins: the ``Iterator/cursor`` of an earlier one; nil: at the first entry.
    package var start: StoreCursor?

    public func makeAsyncIterator() -> Iterator {
        Iterator(pages: self, isSelected: cache.predicate(of: selection, now: now))
    }

    /// Goes through the pages of a store.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pages: CacheEntries
        fileprivate let isSelected: @Sendable (StoredEntry) -> Bool
        private var page: ArraySlice<ListedEntry> = []
        /// Where a later listing continues after all of the current page; nil at the end.
        package private(set) var cursor: StoreCursor?
        /// Whether all of the current page was returned.
        package var isAtPageEnd: Bool { page.isEmpty }
        private var isAtEnd = false

        fileprivate init(pages: CacheEntries, isSelected: @escaping @Sendable (StoredEntry) -> Bool) {
            self.pages = pages
            self.isSelected = isSelected
            cursor = pages.start
        }

        /// The next entry; nil at the end.
        ///
        /// - Throws: `.cancelled` once the task is cancelled, and the store's errors. After an error there are no more entries.
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
                // A store that returned the same cursor would be listed forever.
                isAtEnd = next.next == nil || next.next == cursor
                cursor = next.next
            } catch {
                isAtEnd = true
                throw error
            }
        }

        /// The information about an entry; nil if it is not selected, or not a response.
        private func info(of listed: ListedEntry) -> CacheEntryInfo? {
            let (entry, options) = (listed.entry, pages.cache.options)
            guard !SearchVarianceKeys.isOne(entry.key.bytes), let stored = pages.cache.response(of: entry)
            else { return nil }
            let info = CacheEntryInfo(
                entry,
                stored: stored,
                options: options,
                hits: listed.hits,
                storedBytes: listed.bytes,
                now: pages.now
            )
            // It gets more here than in a selection.
            if case .matching(let predicate) = pages.selection.form { return predicate(info) ? info : nil }
            return isSelected(entry) ? info : nil
        }
    }
}

/// Information about one stored response, for selecting and inspecting them.
///
/// Times and ages are as of the start of the selection or the listing.
public struct CacheEntryInfo: Sendable, Hashable {
    /// The target URI of the request that the response answered.
    public let target: TargetURI
    /// The method of that request, usually GET.
    public let method: RequestMethod
    /// The response's status.
    public let status: StatusCode
    /// The tags of the call (``CallOptions/tags``).
    public let tags: Set<String>
    /// When it was stored.
    public let storedAt: Timestamp
    /// The length of its body in bytes; 0 while it is still being stored.
    public let bodyLength: Int
    /// The length in bytes of its status, fields and the cache's metadata, as stored.
    public let headLength: Int
    /// The bytes that it takes of the store's capacity, including its keys and the store's metadata; nil in a selection,
    /// because the store gives it only for a listing.
    public let storedBytes: Int?
    /// How often it was found since it was written, if the store counts this (a disk store estimates recent hits, up to 14);
    /// nil if it does not, and in a selection.
    public let hits: Int?
    /// Which bytes of its content are stored; nil: all of them (RFC 9111 §3.3).
    package let storedRanges: StoredRanges?
    /// Its age in seconds (RFC 9111 §4.2.3); counted from its receipt if the cache's options fix lifetimes.
    public let age: Int64
    /// How many seconds it stays fresh; once it is stale, 0 or minus the seconds since then (RFC 9111 §4.2).
    public let freshnessLeft: Int64
    /// Whether it belongs to one principal, so that it does not answer anybody else.
    public let isPersonal: Bool
    /// Whether it is pinned against eviction.
    public let isPinned: Bool
    /// Whether the origin must confirm it before it is used again: it was marked stale, or its store lost power.
    public let needsConfirmation: Bool
    /// The keys of the entry in the store.
    package let key: StoreKey
    package let variant: StoreKey
    private let fields: NominatedFields

    /// Whether it answers requests without asking the origin: it is within its lifetime, and need not be confirmed.
    public var isFresh: Bool { freshnessLeft > 0 && !needsConfirmation }

    /// The fields that its Vary nominates, with the values of the request that it answered, sorted by name (RFC 9111 §4.1);
    /// empty if it does not vary.
    public var nominated: [NominatedField] { NominatedField.all(of: fields) }

    init(
        _ entry: StoredEntry,
        stored: StoredResponse,
        options: CacheOptions,
        hits: Int? = nil,
        storedBytes: Int? = nil,
        now: Timestamp
    ) {
        target = stored.target
        method = stored.method
        status = stored.head.status
        tags = entry.description.tags
        storedAt = Timestamp(millisecondsSinceEpoch: entry.storedAt.milliseconds)
        bodyLength = entry.bodyLength
        headLength = entry.description.metadata.count
        let standing = stored.standing(now: now, options: options)
        (age, freshnessLeft) = (standing.age, standing.freshnessLeft)
        isPersonal = CacheKey.Parts(framed: entry.key.bytes).map { !$0.partition.isEmpty } ?? false
        isPinned = entry.isPinned
        needsConfirmation = stored.needsConfirmation || entry.needsValidation
        storedRanges = stored.ranges
        self.hits = hits
        self.storedBytes = storedBytes
        key = entry.key
        variant = entry.variant
        fields = stored.nominated
    }
}

/// A request field that a stored response's Vary nominates, and the value that selects the response (RFC 9111 §4.1).
public struct NominatedField: Sendable, Hashable, CustomStringConvertible {
    /// What is known about the value.
    public struct Value: Sendable, Hashable {
        /// The value in the form in which the cache compares it; nil if it is absent or hidden.
        public let text: String?
        /// Whether it is a credential: the cache only keeps a keyed digest of those.
        public let isHidden: Bool

        /// The request had no such field.
        public static let absent = Value(text: nil, isHidden: false)
        /// The request had such a field, and its value is not shown.
        public static let hidden = Value(text: nil, isHidden: true)

        /// A value that is shown.
        public static func text(_ text: String) -> Value { Value(text: text, isHidden: false) }
    }

    /// The field's name, in lower case.
    public let name: String
    /// Its value.
    public let value: Value

    /// `name: value`, with `(absent)` or `(hidden)` if there is no text.
    public var description: String {
        "\(name): \(value.text ?? (value.isHidden ? "(hidden)" : "(absent)"))"
    }

    /// The fields that the cache keeps of the request, in the form in which it keeps them.
    static func all(of nominated: NominatedFields) -> [NominatedField] {
        var reader = FramedBytes.Reader(nominated.framed)
        _ = reader.next()
        var fields: [NominatedField] = []
        while let name = reader.nextString(), let value = reader.next() {
            let shown: Value
            if value.isEmpty {
                shown = .absent
            } else if value.first == UInt8(ascii: "#") || hiddenNames.contains(name) {
                shown = .hidden
            } else {
                shown = .text(String(decoding: value.dropFirst(), as: UTF8.self))
            }
            fields.append(NominatedField(name: name, value: shown))
        }
        return fields
    }

    private static let hiddenNames: Set<String> = ["authorization", "cookie", "proxy-authorization"]
}
