// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How often keys were requested recently, by their hashes: a count-min sketch of 4-bit counters in four rows.
///
/// Apart from halvings, an estimate is never below the count since the sketch was made, up to 15. Only the lowest of a key's four
/// counters grow (conservative update), so that keys with a common counter inflate each other less. A word has 16 counters; the
/// number of words is arbitrary, so that memory follows the entries closely.
package struct FrequencySketch: Sendable {
    private static let rows = 4
    private var words: [UInt64]

    /// An empty sketch with this many words, at least one.
    package init(words count: Int) { words = Array(repeating: 0, count: max(1, count)) }

    /// The number of words.
    package var count: Int { words.count }
    /// The bytes of memory used.
    package var bytes: Int { words.capacity * 8 }

    /// The estimate for a hash: 0 to 15.
    package func estimate(_ hash: UInt32) -> Int {
        let places = Self.spread(hash)
        return words.withUnsafeBufferPointer { words in
            var least: UInt64 = 15
            for row in 0..<Self.rows {
                let (word, shift) = Self.place(places, row: row, count: words.count)
                least = min(least, words[word] >> shift & 15)
            }
            return Int(least)
        }
    }

    /// Adds one to the count of a hash and returns the new estimate.
    @discardableResult
    package mutating func add(_ hash: UInt32) -> Int {
        let estimate = estimate(hash)
        if estimate < 15 { raise(hash, to: estimate + 1) }
        return min(15, estimate + 1)
    }

    /// Raises the estimate of a hash to at least `count`.
    package mutating func raise(_ hash: UInt32, to count: Int) {
        let count = UInt64(max(0, min(15, count)))
        let places = Self.spread(hash)
        words.withUnsafeMutableBufferPointer { words in
            for row in 0..<Self.rows {
                let (word, shift) = Self.place(places, row: row, count: words.count)
                let counter = words[word] >> shift & 15
                if counter < count { words[word] &+= (count - counter) << shift }
            }
        }
    }

    /// Halves every count, so that old requests count less.
    package mutating func halve() {
        for index in words.indices { words[index] = words[index] >> 1 & 0x7777_7777_7777_7777 }
    }

    private static func spread(_ hash: UInt32) -> UInt64 {
        var mixed = UInt64(hash) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 32) &* 0xD6E8_FEB8_6659_FD93
        return mixed ^ mixed >> 32
    }

    /// Each row has 4 of a word's 16 counters for itself.
    private static func place(_ places: UInt64, row: Int, count: Int) -> (word: Int, shift: UInt64) {
        let step = UInt32(truncatingIfNeeded: places >> 32) | 1
        let place = UInt32(truncatingIfNeeded: places) &+ UInt32(truncatingIfNeeded: row) &* step
        let word = Int(truncatingIfNeeded: (UInt64(place) &* UInt64(truncatingIfNeeded: count)) >> 32)
        return (word, ((places >> 17 & 3) &* 4 &+ UInt64(truncatingIfNeeded: row)) &* 4)
    }
}
