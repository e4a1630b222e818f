// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// A bounded store of entries by framed key, with several variants under one primary key.
///
/// **Choose.** ``MemoryStore`` for one process and speed, ``DiskStore`` where entries must survive a restart.
/// **Use.** A store knows no HTTP: hand it to an `HTTPCache`, or call it as below.
/// **Implement.** Keep these promises:
///
/// - Bytes held never exceed the capacity, keys and metadata counted.
/// - A look-up returns only whole entries, all variants of a primary key as of one instant, newest first; at least 8
///   variants of a key are kept before one of them makes room for another.
/// - ``invalidate(_:)`` and ``purge(_:now:)`` are atomic to other callers, hold across a restart, and also hit entries of
///   the same key that are being written (their commit fails with `.superseded`).
/// - Every operation may be called from any task at any time; none blocks the cooperative threads for long.
/// - `now:` is the caller's clock; a store reads none.
public protocol CacheStore: Sendable {
    /// Random bytes, at least 16, that live exactly as long as the entries; a cache keys its digests of credentials with them.
    var secret: [UInt8] { get }

    /// Looks up what lies in memory without suspending.
    ///
    /// - Returns: the entries (none: the key is known to be absent), or nil where only ``entries(for:now:)`` can tell.
    func peek(_ key: StoreKey, now: StoreInstant) -> [StoredEntry]?

    /// All variants stored under a primary key, newest first; counts as one look-up and as an access for eviction.
    ///
    /// A key that ``peek(_:now:)`` already answered is not looked up again by a well-made caller.
    func entries(for key: StoreKey, now: StoreInstant) async throws(StoreError) -> [StoredEntry]

    /// Opens the body of an entry.
    ///
    /// - Throws: `.superseded` when this version is gone; treat it as a miss.
    func body(of entry: StoredEntry) async throws(StoreError) -> any StoredBody

    /// Opens the body of an entry that lies in memory, without suspending; counts as ``body(of:)`` does.
    ///
    /// - Returns: the whole body, or nil where only ``body(of:)`` can tell; by default always nil.
    func peekBody(of entry: StoredEntry) -> ByteChunk?

    /// Starts an entry; see ``EntryWriter``.
    ///
    /// - Parameters:
    ///   - key: the primary key.
    ///   - variant: the variant under it; an older entry of the same one is replaced.
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

    /// Stores an entry whose whole body is at hand, in one step; by default through ``write(_:variant:description:expectedLength:now:)``.
    ///
    /// It begins when it is called: an invalidation before that does not concern it, one that comes before it ends supersedes it.
    ///
    /// - Parameters: as of ``write(_:variant:description:expectedLength:now:)``; `body` is the whole body.
    /// - Throws: what the writer's methods throw; nothing is left of the entry then.
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
    /// - Returns: the entry as it is now, or nil when the version named is no longer there (then nothing was changed).
    @discardableResult
    func replaceDescription(
        of entry: StoredEntry,
        with description: EntryDescription,
        now: StoreInstant
    ) async throws(StoreError) -> StoredEntry?

    /// Removes one version of one entry; does nothing when it is no longer there.
    func remove(_ entry: StoredEntry) async throws(StoreError)

    /// Removes all variants of a primary key, those being written included.
    func invalidate(_ key: StoreKey) async throws(StoreError)

    /// Removes every entry that `selection` names, those being written included.
    ///
    /// - Returns: how many committed entries were removed; nil where the store marks them as gone in constant time and
    ///   so has not counted them.
    @discardableResult
    func purge(_ selection: PurgeSelection, now: StoreInstant) async throws(StoreError) -> Int?

    /// Shows the committed entries page by page, in an order of the store's own.
    ///
    /// Weakly consistent: an entry that stays from the first page to the last is listed exactly once, freshened or
    /// replaced or not; one that comes or goes meanwhile once or not at all. It counts as no look-up and as no access.
    ///
    /// By default the pages are gathered by ``purge(_:now:)`` with a predicate that takes nothing, which costs a look at every
    /// entry for each page.
    ///
    /// - Parameters:
    ///   - cursor: ``StorePage/next`` of the page before; nil for the first page. One that another store made gives some
    ///     entries or none.
    ///   - limit: how many entries the page has at most; less than 1 means 1.
    ///   - now: when it is read.
    /// - Throws: `.closed`, and what a look-up throws.
    func list(after cursor: StoreCursor?, limit: Int, now: StoreInstant) async throws(StoreError) -> StorePage

    /// Pins an entry against eviction or releases it; pinned bytes count and never exceed half of the capacity.
    ///
    /// - Returns: false when the version is gone or no room is left for pinned entries.
    @discardableResult
    func setPinned(_ pinned: Bool, _ entry: StoredEntry) async throws(StoreError) -> Bool

    /// What was counted so far.
    var statistics: StoreStatistics { get }

    /// Settles which one of the processes that share the store fetches what is missing; nil, the default, where none share it.
    /// A store over another one hands that one's on.
    var fillLeasing: (any FillLeasing)? { get }

    /// Writes what is pending and marks the store cleanly closed; later operations throw `.closed`. Idempotent.
    func close() async
}

/// Which entries a purge takes.
public struct PurgeSelection: Sendable {
    /// The forms a selection has; closed, because every store must know each.
    public enum Form: Sendable {
        /// Every entry.
        case all
        /// Entries that bear the tag.
        case tag(String)
        /// Entries whose primary key begins with these bytes.
        case keyPrefix([UInt8])
        /// Entries for which the predicate holds; it must be quick and must not call the store. An entry that is being
        /// written is shown with the description its writer began with, a body length of 0 and the version
        /// ``StoredEntry/Version/beingWritten``.
        case matching(@Sendable (StoredEntry) -> Bool)
    }

    /// The form.
    public let form: Form

    /// Every entry.
    public static let all = PurgeSelection(form: .all)

    /// Entries that bear `tag`.
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

/// Where an entry stands in a list that is ordered by primary key and variant.
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

/// Keeps the first entries after a place of all that it is shown, in memory for two pages at most.
private final class EntryGatherer: Sendable {
    static let maximumLimit = 1 << 16

    private struct State {
        var found: [(place: EntryPlace, entry: StoredEntry)] = []
        /// Nothing from here on can be on the page.
        var end: EntryPlace?

        mutating func trim(to limit: Int) {
            found.sort { $0.place == $1.place ? $0.entry.version > $1.entry.version : $0.place < $1.place }
            var trimmed: [(place: EntryPlace, entry: StoredEntry)] = []
            // A store may show an entry again that changed while it was asked.
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

/// Some of the entries of a store, and where the next ones begin.
public struct StorePage: Sendable {
    /// The entries, in the store's own order.
    public let listed: [ListedEntry]
    /// What ``CacheStore/list(after:limit:now:)`` goes on from; nil once all were listed.
    public let next: StoreCursor?

    /// A page; only stores make pages.
    public init(listed: [ListedEntry], next: StoreCursor?) {
        self.listed = listed
        self.next = next
    }
}

/// One entry of a store as a list shows it.
public struct ListedEntry: Sendable, Hashable {
    /// The entry.
    public let entry: StoredEntry
    /// How often the entry was found, as far as the store counts; nil where it does not. A store on the disk estimates how often
    /// that was of late, 0 to 14: what was asked for long ago counts less, and what was before the entry was last evicted counts too.
    public let hits: Int?
    /// The bytes the entry takes against the store's capacity.
    public let bytes: Int

    /// An entry with what the store says of it; only stores make these.
    public init(entry: StoredEntry, hits: Int?, bytes: Int) {
        self.entry = entry
        self.hits = hits
        self.bytes = bytes
    }
}

/// A place between two entries of a store's list.
///
/// The bytes mean something to the store that made them alone, and only while it is open.
public struct StoreCursor: Sendable, Hashable {
    /// The bytes.
    public let bytes: [UInt8]

    /// A cursor of these bytes; only stores make cursors.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}

extension StoreCursor {
    /// A place within a list that is ordered by number, and below that by bytes.
    init(number: UInt64, bytes: [UInt8]) {
        self.init((0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + bytes)
    }

    /// What ``init(number:bytes:)`` put in; nil for bytes that it did not make.
    var parts: (number: UInt64, bytes: [UInt8])? {
        guard bytes.count >= 8 else { return nil }
        let number = bytes.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return (number, Array(bytes.dropFirst(8)))
    }
}
