// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

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
