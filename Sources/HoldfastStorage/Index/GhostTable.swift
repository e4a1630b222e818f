// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What was evicted lately: a fingerprint of 16 bits a key, about as many as there are entries.
///
/// A key that returns soon after it was evicted deserves better than to begin anew. Fingerprints stand in buckets of 32,
/// newest first; the oldest falls out where a bucket is full, so the table remembers about as many evictions as it has
/// room for, whatever the time between them. A key never noted is taken for one with a chance of at most 32 in 65,535.
struct GhostTable: ~Copyable {
    private var memory = MappedPages()
    private var buckets = 0

    /// The fingerprints of a bucket: one cache line.
    private static let depth = 32

    /// Nothing was evicted; takes no memory until something is.
    init() {}

    /// The bytes of memory held, whole pages.
    var bytes: Int { memory.bytes }

    /// Notes that the entry with this hash of its primary key was evicted.
    ///
    /// - Parameter entries: How many entries there are, by which the size of the table follows.
    mutating func note(_ primary: UInt64, entries: Int) {
        fit(entries)
        guard let bucket = bucket(of: primary) else { return }
        let fingerprint = Self.fingerprint(of: primary)
        // An older note of the same key makes room for this one, else the oldest note does.
        var place = 0
        while place < Self.depth - 1, bucket[place] != fingerprint, bucket[place] != 0 { place += 1 }
        while place > 0 {
            bucket[place] = bucket[place - 1]
            place -= 1
        }
        bucket[0] = fingerprint
    }

    /// Whether the key was evicted lately; if so it is forgotten.
    mutating func takes(_ primary: UInt64) -> Bool {
        guard let bucket = bucket(of: primary) else { return false }
        let fingerprint = Self.fingerprint(of: primary)
        var place = 0
        while place < Self.depth, bucket[place] != fingerprint {
            if bucket[place] == 0 { return false }
            place += 1
        }
        guard place < Self.depth else { return false }
        while place < Self.depth - 1 {
            bucket[place] = bucket[place + 1]
            place += 1
        }
        bucket[place] = 0
        return true
    }

    /// Forgets everything and gives the memory back.
    mutating func removeAll() {
        memory = MappedPages()
        buckets = 0
    }

    /// 1 ... 65,535 from bits that neither the shard nor the bucket is chosen by.
    private static func fingerprint(of primary: UInt64) -> UInt16 {
        UInt16(truncatingIfNeeded: 1 + (primary >> 32 & 0x3FF_FFFF) % 65_535)
    }

    private func bucket(of primary: UInt64) -> UnsafeMutablePointer<UInt16>? {
        guard buckets > 0 else { return nil }
        let number = ((primary & 0xFFFF_FFFF) &* UInt64(truncatingIfNeeded: buckets)) >> 32
        return Self.bucket(Int(truncatingIfNeeded: number), in: memory)
    }

    private static func bucket(_ number: Int, in memory: borrowing MappedPages) -> UnsafeMutablePointer<UInt16>? {
        memory.base?.assumingMemoryBound(to: UInt16.self).advanced(by: number * depth)
    }

    /// Grows by a fifth when there are more entries than fingerprints find room, shrinks when there are half as many.
    private mutating func fit(_ entries: Int) {
        let room = buckets * Self.depth
        let wanted: Int
        if entries > room || room == 0 {
            wanted = max(room + room / 5, entries, 1)
        } else if entries < room / 2, memory.bytes > MappedPages.pageSize {
            wanted = max(entries, 1)
        } else {
            return
        }
        // Without memory for another size the old one does as well: all this is a hint.
        let (bytes, overflow) = wanted.multipliedReportingOverflow(by: 2)
        guard !overflow, let whole = MappedPages.wholePages(bytes), whole != memory.bytes,
            let fresh = MappedPages(bytes: whole)
        else { return }
        let count = fresh.bytes / 2 / Self.depth
        fresh.base?.bindMemory(to: UInt16.self, capacity: count * Self.depth)
        for number in 0..<(buckets == 0 ? 0 : count) { spread(into: fresh, number, of: count) }
        memory = fresh
        buckets = count
    }

    /// Fills one bucket of a table of another size with what may belong there.
    ///
    /// A fingerprint does not tell its bucket in the new table, so it goes to every bucket that shares hashes with its
    /// old one; copies nobody asks for age like the others. Buckets of several old ones take their newest in turn.
    private func spread(into fresh: borrowing MappedPages, _ number: Int, of count: Int) {
        guard let target = Self.bucket(number, in: fresh) else { return }
        let first = number * buckets / count
        let last = min(((number + 1) * buckets - 1) / count, buckets - 1)
        var filled = 0
        for age in 0..<Self.depth {
            for old in first...max(first, last) {
                guard filled < Self.depth, let source = Self.bucket(old, in: memory), source[age] != 0 else { continue }
                target[filled] = source[age]
                filled += 1
            }
        }
    }
}
