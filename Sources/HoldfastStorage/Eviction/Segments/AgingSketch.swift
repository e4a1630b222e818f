// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A ``FrequencySketch`` that halves its counts now and then and follows the number of entries, at 8 to 9 bytes each.
struct AgingSketch: Sendable {
    private static let leastWords = 16
    /// Counts are halved after so many additions a word.
    private static let period = 20

    private var sketch = FrequencySketch(words: AgingSketch.leastWords)
    private var additions = 0

    /// The bytes of memory taken.
    var bytes: Int { sketch.bytes }

    /// The estimate for a hash: 0 to 15.
    func estimate(_ hash: UInt32) -> Int { sketch.estimate(hash) }

    /// Counts a request for a key.
    mutating func add(_ hash: UInt32) {
        sketch.add(hash)
        additions += 1
        guard additions >= Self.period * sketch.count else { return }
        additions /= 2
        sketch.halve()
    }

    /// Whether there are more entries than words.
    func isTooSmall(for entries: Int) -> Bool { entries > sketch.count }

    /// Makes a larger sketch for so many entries; `hashes` names the keys whose counts are kept.
    mutating func grow(for entries: Int, keeping hashes: (_ keep: (UInt32) -> Void) -> Void) {
        let words = max(entries, sketch.count)
        let old = sketch
        var fresh = FrequencySketch(words: words + words / 16 + Self.leastWords)
        hashes { fresh.raise($0, to: old.estimate($0)) }
        sketch = fresh
    }

    /// Forgets everything.
    mutating func removeAll() { self = AgingSketch() }
}
