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

    private struct Numbered: Sendable {
        let id: UInt64
        var writer: Writer
    }

    /// By ascending number. Few at a time, so that a list is quicker than any table.
    private var writers: [Numbered] = []
    private var nextID: UInt64 = 0

    /// The bytes held by all of them.
    private(set) var reserved = 0

    /// The writer with this number, unless it ended.
    subscript(id: UInt64) -> Writer? { place(of: id).map { writers[$0].writer } }

    /// Every writer with its number.
    var all: [UInt64: Writer] {
        Dictionary(writers.map { ($0.id, $0.writer) }, uniquingKeysWith: { first, _ in first })
    }

    /// Takes in a writer and numbers it.
    mutating func begin(_ writer: Writer) -> UInt64 {
        nextID &+= 1
        writers.append(Numbered(id: nextID, writer: writer))
        reserved += writer.reserved
        return nextID
    }

    /// Takes in what is put in one step and may take a while.
    mutating func begin(_ draft: EntryDraft) -> UInt64 {
        begin(Writer(key: draft.key, variant: draft.variant, description: draft.description, reserved: 0))
    }

    /// Holds `count` bytes more for a writer, or fewer when negative.
    mutating func reserve(_ count: Int, for id: UInt64) {
        guard let place = place(of: id) else { return }
        writers[place].writer.reserved += count
        reserved += count
    }

    /// Takes a writer out, and what it held with it.
    @discardableResult
    mutating func end(_ id: UInt64) -> Writer? {
        guard let place = place(of: id) else { return nil }
        let writer = writers.remove(at: place).writer
        reserved -= writer.reserved
        return writer
    }

    /// Whether this writer may commit; nil once it ended.
    func maySucceed(_ id: UInt64) -> Bool? { place(of: id).map { !writers[$0].writer.isSuperseded } }

    /// Whether an entry of `key` is being written.
    func hasWriters(of key: StoreKey) -> Bool { writers.contains { $0.writer.key == key } }

    /// Makes sure that no writer commits.
    mutating func supersedeAll() {
        for place in writers.indices { writers[place].writer.isSuperseded = true }
    }

    /// Makes sure that no writer of `key` commits.
    mutating func supersede(_ key: StoreKey) {
        for place in writers.indices where writers[place].writer.key == key {
            writers[place].writer.isSuperseded = true
        }
    }

    /// Makes sure that none of these writers commits.
    mutating func supersede(ids: [UInt64]) {
        for id in ids {
            if let place = place(of: id) { writers[place].writer.isSuperseded = true }
        }
    }

    private func place(of id: UInt64) -> Int? {
        var low = 0
        var high = writers.count
        while low < high {
            let middle = (low + high) / 2
            if writers[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < writers.count && writers[low].id == id ? low : nil
    }
}
