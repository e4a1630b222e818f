// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How often keys were asked for, halved after ten requests for each entry there is room for.
///
/// Room is made in powers of two, by which time is told; the sketch itself has as many words up to 1,024, from
/// there on three quarters of a word for each entry. It grows by an eighth, when it takes over what it knows of those held.
struct AgingPopularity: Sendable {
    /// Entries there is room for: a power of two.
    private(set) var room = 64
    private var sketch = FrequencySketch(words: 64)
    private var counted = 0

    /// The bytes of memory taken.
    var bytes: Int { sketch.bytes }

    /// Whether there should be more room for so many entries.
    func isTight(for entries: Int) -> Bool { entries > room || entries * 2 / 3 > sketch.count }

    /// Makes room for so many entries, of which those with these hashes are held.
    mutating func grow(to entries: Int, keeping hashes: [UInt32]) {
        while room < entries { room *= 2 }
        var larger = FrequencySketch(words: max(min(room, 1_024), entries * 3 / 4))
        for hash in hashes { larger.raise(hash, to: sketch.estimate(hash)) }
        sketch = larger
    }

    /// Counts a request.
    mutating func count(_ hash: UInt32) {
        sketch.add(hash)
        counted += 1
        guard counted >= 10 * room else { return }
        sketch.halve()
        counted /= 2
    }

    /// How often a key was asked for, up to 15.
    func estimate(_ hash: UInt32) -> Int { sketch.estimate(hash) }
}
