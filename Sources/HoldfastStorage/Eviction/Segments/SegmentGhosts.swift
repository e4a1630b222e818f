// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which keys were evicted from the small log of late: what ``GhostTable`` is to a store, as a value.
///
/// Fingerprints of 16 bits in buckets of 32, the newest first; where a bucket is full the oldest falls out.
struct SegmentGhosts: Sendable {
    private static let depth = 32

    private var prints: [UInt16] = []
    private var buckets = 0

    /// The bytes of memory taken.
    var bytes: Int { prints.capacity * 2 }

    /// Notes that a key was evicted.
    ///
    /// - Parameter reach: how many keys are to be remembered.
    mutating func note(_ hash: UInt32, reach: Int) {
        if buckets == 0 || buckets * Self.depth < reach { grow(to: reach / Self.depth + reach / (8 * Self.depth) + 1) }
        let print = Self.print(hash)
        let first = bucket(hash) * Self.depth
        // An older note of the same key makes room for this one, else the oldest note does.
        var place = 0
        while place < Self.depth - 1, prints[first + place] != print, prints[first + place] != 0 { place += 1 }
        while place > 0 {
            prints[first + place] = prints[first + place - 1]
            place -= 1
        }
        prints[first] = print
    }

    /// Whether the key is among them; if so it is forgotten.
    mutating func takes(_ hash: UInt32) -> Bool {
        guard buckets > 0 else { return false }
        let print = Self.print(hash)
        let first = bucket(hash) * Self.depth
        guard var place = (0..<Self.depth).first(where: { prints[first + $0] == print }) else { return false }
        while place < Self.depth - 1 {
            prints[first + place] = prints[first + place + 1]
            place += 1
        }
        prints[first + place] = 0
        return true
    }

    /// Keys of a new bucket were in one old bucket or the next: it gets the newest of both, in turn.
    private mutating func grow(to count: Int) {
        var grown = [UInt16](repeating: 0, count: count * Self.depth)
        for number in 0..<(buckets == 0 ? 0 : count) {
            let first = number * buckets / count
            let last = max(first, min(((number + 1) * buckets - 1) / count, buckets - 1))
            var filled = 0
            for age in 0..<Self.depth {
                for old in first...last where filled < Self.depth && prints[old * Self.depth + age] != 0 {
                    grown[number * Self.depth + filled] = prints[old * Self.depth + age]
                    filled += 1
                }
            }
        }
        prints = grown
        buckets = count
    }

    private func bucket(_ hash: UInt32) -> Int {
        Int(truncatingIfNeeded: (UInt64(hash) &* UInt64(truncatingIfNeeded: buckets)) >> 32)
    }

    /// 1 ... 65,535 from bits by which the bucket is not chosen alone.
    private static func print(_ hash: UInt32) -> UInt16 {
        UInt16(truncatingIfNeeded: 1 + ((hash &* 0x9E37_79B1) >> 7) % 65_535)
    }
}
