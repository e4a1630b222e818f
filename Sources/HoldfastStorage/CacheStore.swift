// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A bounded store of entries by framed key, with several variants under one primary key.
///
/// **Choose.** ``MemoryStore`` for speed within one process, ``DiskStore`` if entries must survive a restart.
/// **Use.** A store knows nothing of HTTP: pass it to an `HTTPCache`, or call it directly.
/// **Implement.** Keep these promises:
///
/// - The bytes held never exceed the capacity; keys and metadata count.
/// - A lookup returns only whole entries: all variants of a primary key at one instant, newest first. At least 8 variants of a key
///   are kept before one of them makes room for another.
/// - ``invalidate(_:)`` and ``purge(_:now:)`` are atomic to other callers and hold across a restart. They also apply to matching
///   entries that are being written: their commit fails with `.superseded`.
/// - Every operation may be called from any task at any time; none blocks the cooperative threads for long.
/// - `now:` is the caller's clock; a store reads no clock.
public protocol CacheStore: Sendable {
    /// Random bytes, at least 16, that live exactly as long as the entries. A cache uses them as the key of its credential digests.
    var secret: [UInt8] { get }

    /// Looks up what is in memory, without suspending.
    ///
    /// - Returns: the entries (empty if the key is known to be absent), or nil if only ``entries(for:now:)`` can tell.
    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]?

    /// All variants stored under a primary key, newest first; counts as one lookup and as an access for eviction.
    ///
    /// If ``peek(_:now:)`` has already answered for a key, do not look it up again.
    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry]

    /// Opens the body of an entry.
    ///
    /// - Throws: `.superseded` if this version is gone, unless the store still has its bytes; treat it as a miss.
    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody

    /// Opens the body of an entry that is in memory, without suspending; counts as ``body(of:)`` does.
    ///
    /// - Returns: the whole body, or nil if only ``body(of:)`` can tell; by default always nil.
    func peekBody(of entry: StoredEntry) -> ByteChunk?

    /// Starts an entry; see ``EntryWriter``.
    ///
    /// - Parameters:
    ///   - key: the primary key.
    ///   - variant: the variant under it; replaces an older entry of the same variant.
    ///   - description: what the store keeps beside the body.
    ///   - expectedLength: the body's length if known, so that an entry that cannot fit is refused with `.tooLarge` at once.
    ///   - now: when it is written.
    func write(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        expectedLength: Int?,
        now: StoreInstant
    ) async throws(StoreError) -> any EntryWriter

    /// Stores an entry whose whole body is available, in one step; by default through
    /// ``write(_:variant:description:expectedLength:now:)``.
    ///
    /// The write begins with the call: an invalidation before that does not affect it, and one before it ends supersedes it.
    ///
    /// - Parameters: as in ``write(_:variant:description:expectedLength:now:)``; `body` is the whole body.
    /// - Throws: what the writer's methods throw; then nothing of the entry remains.
    @discardableResult
    func put(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        body: ByteChunk,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry

    /// Gives an entry a new description without touching its body.
    ///
    /// - Returns: the entry as it is now, or nil if the given version is gone; then nothing was changed.
    @discardableResult
    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry?

    /// Removes one version of one entry; does nothing if it is gone.
    func remove(_ entry: StoredEntry) async throws(StoreError)

    /// Removes all variants of a primary key, including those that are being written.
    func invalidate(_ key: StoreKey) async throws(StoreError)

    /// Removes every entry that `selection` matches, including those that are being written. Cancelling the task does not end it
    /// half-way.
    ///
    /// - Returns: how many committed entries were removed; nil if the store marks them as gone in constant time, without counting
    ///   them. Such marked ones may be counted by a later purge of everything.
    @discardableResult
    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int?

    /// Lists the committed entries page by page, in an order of the store's own.
    ///
    /// The list is weakly consistent. An entry that is present from the first page to the last is listed exactly once, even if it
    /// is freshened or replaced. An entry that is added or removed in between is listed once or not at all. Listing counts as
    /// neither a lookup nor an access.
    ///
    /// By default, the pages are gathered by ``purge(_:now:)`` with a predicate that matches nothing, so each page looks at every
    /// entry.
    ///
    /// - Parameters:
    ///   - cursor: ``StorePage/next`` of the page before; nil for the first page. A cursor of another store gives some entries or
    ///     none.
    ///   - limit: the most entries in the page; less than 1 means 1.
    ///   - now: when it is read.
    /// - Throws: `.closed`, and what a lookup throws.
    func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage

    /// Pins an entry against eviction, or unpins it. Pinned bytes count, and never exceed half of the capacity.
    ///
    /// - Returns: false if the version is gone or there is no room for more pinned entries.
    @discardableResult
    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool

    /// What the store has counted so far.
    var statistics: StoreStatistics { get }

    /// Decides which of the processes that share the store fetches a missing response; nil, the default, if no processes share it.
    /// A store on top of another one returns that one's.
    var fillLeasing: (any FillLeasing)? { get }

    /// Writes what is pending and marks the store as cleanly closed. Later operations throw `.closed`. Idempotent.
    func close() async
}

/// Which entries a purge removes.
public struct PurgeSelection: Sendable {
    /// The forms of a selection; closed, because every store must know each.
    public enum Form: Sendable {
        /// Every entry.
        case all
        /// Entries that have the tag, compared by its UTF-8 bytes.
        case tag(String)
        /// Entries whose primary key begins with these bytes.
        case keyPrefix([UInt8])
        /// Entries for which the predicate holds; it must be quick and must not call the store. An entry that is being written is
        /// shown with its writer's first description, a body length of 0 and the version ``StoredEntry/Version/beingWritten``.
        case matching(@Sendable (StoredEntry) -> Bool)
    }

    /// The form.
    public let form: Form

    /// Every entry.
    public static let all = PurgeSelection(form: .all)

    /// Entries that have `tag`, compared by its UTF-8 bytes.
    public static func tag(_ tag: String) -> PurgeSelection { PurgeSelection(form: .tag(tag)) }

    /// Entries whose primary key begins with `prefix`.
    public static func keyPrefix(_ prefix: [UInt8]) -> PurgeSelection { PurgeSelection(form: .keyPrefix(prefix)) }

    /// Entries for which `predicate` holds.
    public static func matching(_ predicate: @escaping @Sendable (StoredEntry) -> Bool) -> PurgeSelection {
        PurgeSelection(form: .matching(predicate))
    }
}

extension CacheStore {
    /// Nil: only ``CacheStore/body(of:)`` can tell.
    public func peekBody(of entry: StoredEntry) -> ByteChunk? { nil }

    @discardableResult
    public func put(
        _ key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        body: ByteChunk,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry {
        let writer = try await write(
            key,
            variant: variant,
            description: description,
            expectedLength: body.count,
            now: now
        )
        do throws(StoreError) {
            if !body.isEmpty { try await writer.append(body) }
            return try await writer.commit(nil, now: now)
        } catch {
            writer.abandon()
            throw error
        }
    }

    public func list(
        after cursor: StoreCursor?,
        limit: Int,
        now: StoreInstant
    ) async throws(StoreError) -> StorePage {
        let limit = min(max(1, limit), EntryGatherer.maximumLimit)
        let gatherer = EntryGatherer(after: cursor.flatMap(EntryPlace.init), limit: limit)
        try await purge(
            .matching { entry in
                if entry.version != .beingWritten { gatherer.add(entry) }
                return false
            },
            now: now
        )
        return gatherer.page
    }
}

/// The place of an entry in a list ordered by primary key and variant.
private struct EntryPlace: Comparable, Sendable {
    let key: [UInt8]
    let variant: [UInt8]

    init(_ entry: StoredEntry) {
        key = entry.key.bytes
        variant = entry.variant.bytes
    }

    init?(_ cursor: StoreCursor) {
        guard let (count, bytes) = cursor.parts, count <= UInt64(bytes.count) else { return nil }
        key = Array(bytes.prefix(Int(count)))
        variant = Array(bytes.dropFirst(Int(count)))
    }

    var cursor: StoreCursor { StoreCursor(number: UInt64(key.count), bytes: key + variant) }

    static func < (left: EntryPlace, right: EntryPlace) -> Bool {
        if left.key == right.key { return left.variant.lexicographicallyPrecedes(right.variant) }
        return left.key.lexicographicallyPrecedes(right.key)
    }
}

/// Keeps the first entries after a place, from all that it is shown; holds at most two pages in memory.
private final class EntryGatherer: Sendable {
    static let maximumLimit = 1 << 16

    private struct State {
        var found: [(place: EntryPlace, entry: StoredEntry)] = []
        /// No entry from here on can be on the page.
        var end: EntryPlace?

        mutating func trim(to limit: Int) {
            found.sort { $0.place == $1.place ? $0.entry.version > $1.entry.version : $0.place < $1.place }
            var trimmed: [(place: EntryPlace, entry: StoredEntry)] = []
            // A store may show an entry again if it changed while the predicate ran.
            for item in found where trimmed.last?.place != item.place {
                if trimmed.count > limit { break }
                trimmed.append(item)
            }
            found = trimmed
            if found.count > limit { end = found.last?.place }
        }
    }

    private let start: EntryPlace?
    private let limit: Int
    private let state = Mutex(State())

    init(after start: EntryPlace?, limit: Int) {
        self.start = start
        self.limit = limit
    }

    func add(_ entry: StoredEntry) {
        let place = EntryPlace(entry)
        if let start, place <= start { return }
        state.withLock { state in
            if let end = state.end, place > end { return }
            state.found.append((place, entry))
            if state.found.count > 2 * limit + 64 { state.trim(to: limit) }
        }
    }

    var page: StorePage {
        state.withLock { state in
            state.trim(to: limit)
            let listed = state.found.prefix(limit)
            return StorePage(
                listed: listed.map { ListedEntry(entry: $0.entry, hits: nil, bytes: $0.entry.byteCount) },
                next: state.found.count > limit ? listed.last?.place.cursor : nil
            )
        }
    }
}

extension StoredEntry {
    /// The bytes of key, variant, description and body.
    fileprivate var byteCount: Int {
        let (sum, overflow) = (key.bytes.count + variant.bytes.count + description.byteCount)
            .addingReportingOverflow(bodyLength)
        return overflow ? .max : sum
    }
}

/// Some of the entries of a store, and where the next page begins.
public struct StorePage: Sendable {
    /// The entries, in the store's own order.
    public let listed: [ListedEntry]
    /// The cursor for the next call of ``CacheStore/list(after:limit:now:)``; nil after the last page.
    public let next: StoreCursor?

    /// A page; only stores make pages.
    public init(listed: [ListedEntry], next: StoreCursor?) {
        self.listed = listed
        self.next = next
    }
}

/// One entry of a store, as a list shows it.
public struct ListedEntry: Sendable, Hashable {
    /// The entry.
    public let entry: StoredEntry
    /// How often the entry was found; nil if the store does not count. A disk store estimates how often that was recently, 0 to 14:
    /// old accesses count less, and accesses before the entry was last evicted count too.
    public let hits: Int?
    /// The bytes of the store's capacity that the entry takes.
    public let bytes: Int

    /// An entry with the store's figures for it; only stores make these.
    public init(entry: StoredEntry, hits: Int?, bytes: Int) {
        self.entry = entry
        self.hits = hits
        self.bytes = bytes
    }
}

/// A place between two entries of a store's list.
///
/// Only the store that made the bytes understands them, and only while it is open.
public struct StoreCursor: Sendable, Hashable {
    /// The bytes.
    public let bytes: [UInt8]

    /// A cursor of these bytes; only stores make cursors.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }
}

extension StoreCursor {
    /// A place in a list that is ordered by number, then by bytes.
    init(number: UInt64, bytes: [UInt8]) {
        self.init((0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + bytes)
    }

    /// What ``init(number:bytes:)`` was given; nil for bytes that it did not make.
    var parts: (number: UInt64, bytes: [UInt8])? {
        guard bytes.count >= 8 else { return nil }
        let number = bytes.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return (number, Array(bytes.dropFirst(8)))
    }
}
