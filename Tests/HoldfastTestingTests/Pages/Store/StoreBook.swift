// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage

/// What the store holds. It lies under one lock: nothing in it waits, and every change is whole to those who look.
struct StoreBook {
    struct Held {
        var entry: StoredEntry
        let body: ByteChunk
        var lastUse: UInt64
        let cost: Int
    }

    struct Writing {
        let key: StoreKey
        let variant: StoreKey
        let description: EntryDescription
        var reserved: Int
        var isSuperseded = false
    }

    /// All variants of each primary key, newest first.
    var held: [StoreKey: [Held]] = [:]
    /// What is being written, by the writer's number.
    var writers: [UInt64: Writing] = [:]
    /// What was counted; bytes used are those of what is held and of what is being written.
    var counts = StoreStatistics()
    var pinnedBytes = 0
    var isClosed = false
    /// The latest time that a caller told.
    var now = StoreInstant(milliseconds: .min)
    private var lastNumber: UInt64 = 0

    init(capacity: Int) {
        counts.capacity = max(0, capacity)
    }

    /// Pins take half of the capacity at most, so an entry that takes no more than the other half can find room.
    var largest: Int { counts.capacity / 2 }

    /// Versions, writers and uses are numbered together.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}

extension StoreBook {
    /// Bytes counted for the tables and objects around an entry.
    static let overhead = 500

    /// What an entry takes beside its body.
    static func cost(_ key: StoreKey, _ variant: StoreKey, _ description: EntryDescription) -> Int {
        let tags = description.tags.reduce(0) { $0 + $1.utf8.count }
        return key.bytes.count + variant.bytes.count + description.metadata.count + tags + overhead
    }

    /// Refuses what could never fit.
    func check(_ cost: Int, body: Int) throws(StoreError) {
        guard cost <= largest, body <= largest - cost else {
            throw StoreError(.tooLarge, "An entry may take \(largest) bytes; give the store a larger capacity.")
        }
    }

    /// Evicts until `bytes` more fit: what is of no use any more first, then what was used longest ago.
    mutating func makeRoom(for bytes: Int) throws(StoreError) {
        while counts.bytesUsed > counts.capacity - bytes {
            let now = now
            let candidates = held.values.joined().filter { !$0.entry.isPinned }
            let uses = candidates.map { $0.entry.description.uselessAfter < now ? 0 : $0.lastUse }
            guard let victim = zip(candidates, uses).min(by: { $0.1 < $1.1 })?.0 else {
                throw StoreError(.noSpace, "Pins and writers hold all the room; release some, or try again later.")
            }
            take(victim.entry)
            counts.entriesEvicted += 1
        }
    }
}

extension StoreBook {
    func find(_ entry: StoredEntry) -> Held? {
        held[entry.key]?.first { $0.entry.version == entry.version }
    }

    /// Counts as a use of all variants of a key, or of one version.
    mutating func touch(_ key: StoreKey, _ version: StoredEntry.Version? = nil) {
        let use = nextNumber()
        for place in held[key]?.indices ?? 0..<0 where version == nil || held[key]?[place].entry.version == version {
            held[key]?[place].lastUse = use
        }
    }

    /// Takes one version out, if it is still there.
    mutating func take(_ entry: StoredEntry) {
        guard var variants = held[entry.key],
            let place = variants.firstIndex(where: { $0.entry.version == entry.version })
        else { return }
        let gone = variants.remove(at: place)
        held[entry.key] = variants.isEmpty ? nil : variants
        counts.entryCount -= 1
        counts.bytesUsed -= gone.cost
        if gone.entry.isPinned { pinnedBytes -= gone.cost }
    }

    /// Shows an entry as the newest of its key, in the place of an older version of its variant, whose pin it takes over as
    /// far as there is room for pins.
    mutating func publish(
        _ key: StoreKey,
        _ variant: StoreKey,
        _ description: EntryDescription,
        _ body: ByteChunk,
        storedAt: StoreInstant
    ) -> StoredEntry {
        let cost = StoreBook.cost(key, variant, description) + body.count
        let older = held[key]?.first { $0.entry.variant == variant }?.entry
        if let older { take(older) }
        let entry = StoredEntry(
            key: key,
            variant: variant,
            version: StoredEntry.Version(number: nextNumber()),
            description: description,
            bodyLength: body.count,
            storedAt: storedAt,
            isPinned: older?.isPinned == true && pinnedBytes + cost <= counts.capacity / 2
        )
        held[key, default: []].insert(Held(entry: entry, body: body, lastUse: nextNumber(), cost: cost), at: 0)
        counts.entryCount += 1
        counts.bytesUsed += cost
        if entry.isPinned { pinnedBytes += cost }
        if let variants = held[key], variants.count > 16,
            let oldest = variants.dropFirst().last(where: { !$0.entry.isPinned })
        {
            take(oldest.entry)
            counts.entriesEvicted += 1
        }
        return entry
    }

    /// Removes what `takes` says; what is being written must not appear any more either.
    mutating func remove(where takes: (StoredEntry) -> Bool) -> Int {
        for (id, writing) in writers {
            let shown = StoredEntry(
                key: writing.key,
                variant: writing.variant,
                version: .beingWritten,
                description: writing.description,
                bodyLength: 0,
                storedAt: now
            )
            if takes(shown) { writers[id]?.isSuperseded = true }
        }
        let gone = held.values.joined().map(\.entry).filter(takes)
        for entry in gone { take(entry) }
        counts.entriesRemoved += gone.count
        return gone.count
    }
}

extension StoreBook {
    /// What a writer that has not ended is writing.
    func writing(_ id: UInt64) throws(StoreError) -> Writing {
        guard let writing = writers[id] else {
            throw StoreError(.abandoned, "The writer has committed or given up already; start a new one.")
        }
        return writing
    }

    /// Ends a writer and gives its room back.
    mutating func end(_ id: UInt64) {
        guard let writing = writers.removeValue(forKey: id) else { return }
        counts.bytesUsed -= writing.reserved
    }

    mutating func reserve(_ count: Int, for id: UInt64) throws(StoreError) {
        let writing = try writing(id)
        do throws(StoreError) {
            try check(writing.reserved, body: count)
        } catch {
            end(id)
            throw error
        }
        try makeRoom(for: count)
        writers[id]?.reserved += count
        counts.bytesUsed += count
    }

    mutating func commit(
        _ id: UInt64,
        _ description: EntryDescription?,
        _ body: ByteChunk,
        now: StoreInstant
    ) throws(StoreError) -> StoredEntry {
        let writing = try writing(id)
        if writing.isSuperseded {
            end(id)
            throw StoreError(.superseded, "The key was invalidated while this entry was being written; fetch it again.")
        }
        let description = description.map(bounded) ?? writing.description
        let cost = StoreBook.cost(writing.key, writing.variant, description)
        try check(cost, body: body.count)
        try makeRoom(for: cost + body.count - writing.reserved)
        end(id)
        counts.entriesWritten += 1
        counts.bytesWritten += body.count
        return publish(writing.key, writing.variant, description, body, storedAt: now)
    }
}

/// Of the tags those within the bounds.
func bounded(_ description: EntryDescription) -> EntryDescription {
    var bounded = description
    bounded.tags = Set(description.tags.filter { $0.utf8.count <= 1_024 }.sorted().prefix(64))
    return bounded
}
