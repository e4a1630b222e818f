// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
