// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The entries that are being written: what a purge or an invalidation must also reach.
struct WritersInFlight: Sendable {
    /// One entry being written.
    struct Writer: Sendable {
        let key: StoreKey
        let variant: StoreKey
        let description: EntryDescription
        /// Bytes held against the capacity.
        var reserved: Int
        /// Set once the key was invalidated or purged: the bytes may be older than what made them invalid.
        var isSuperseded = false
    }

    private var writers: [UInt64: Writer] = [:]
    private var ids: [StoreKey: Set<UInt64>] = [:]
    private var nextID: UInt64 = 0

    /// The bytes held by all of them.
    private(set) var reserved = 0

    /// The writer with this number, unless it ended.
    subscript(id: UInt64) -> Writer? { writers[id] }

    /// Every writer with its number.
    var all: [UInt64: Writer] { writers }

    /// Takes in a writer and numbers it.
    mutating func begin(_ writer: Writer) -> UInt64 {
        nextID &+= 1
        writers[nextID] = writer
        ids[writer.key, default: []].insert(nextID)
        reserved += writer.reserved
        return nextID
    }

    /// Holds `count` bytes more for a writer, or fewer when negative.
    mutating func reserve(_ count: Int, for id: UInt64) {
        guard writers[id] != nil else { return }
        writers[id]?.reserved += count
        reserved += count
    }

    /// Takes a writer out, and what it held with it.
    @discardableResult
    mutating func end(_ id: UInt64) -> Writer? {
        guard let writer = writers.removeValue(forKey: id) else { return nil }
        reserved -= writer.reserved
        ids[writer.key]?.remove(id)
        if ids[writer.key]?.isEmpty == true { ids[writer.key] = nil }
        return writer
    }

    /// Whether an entry of `key` is being written.
    func hasWriters(of key: StoreKey) -> Bool { ids[key] != nil }

    /// Makes sure that no writer commits.
    mutating func supersedeAll() {
        for id in writers.keys { writers[id]?.isSuperseded = true }
    }

    /// Makes sure that no writer of `key` commits.
    mutating func supersede(_ key: StoreKey) {
        for id in ids[key] ?? [] { writers[id]?.isSuperseded = true }
    }

    /// Makes sure that none of these writers commits.
    mutating func supersede(ids: [UInt64]) {
        for id in ids { writers[id]?.isSuperseded = true }
    }
}
