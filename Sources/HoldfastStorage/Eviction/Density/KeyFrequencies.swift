// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How often keys were requested recently: 8 bits in the row of each held key, and a sketch of the others.
///
/// The 8 bits are a logarithm that falls with time, as in ``DensityEntry``, in steps of 1/8 and modulo 32: an entry that was not
/// requested for 23 half-lives looks new. Fractions of a step are rounded at random, so that uses count correctly on average. About
/// 7 bytes for each held key, all in the sketch. A use reads and writes only the clock and the caller's 8 bits.
package struct KeyFrequencies: Sendable {
    /// Requests for each held key after which a frequency has halved.
    package static let halfLife = 30
    /// Words of the sketch for each 16 keys.
    private static let wordsForSixteen = 14
    /// The most keys that the sketch is sized for, for each held key.
    private static let headroom = 1.25
    /// Bits of a weight that its mark does not show.
    package static let hiddenBits: UInt32 = 6

    private let leastWords: Int
    private var sketch: FrequencySketch
    private var random: PolicyRandom
    /// Half-lives since the start, times 2^32.
    private var time: UInt64 = 0
    private var timeStep: UInt64 = 0
    private var halvings: UInt64 = 0

    /// Nothing requested yet; the sketch has at least `leastWords` words, at least 4.
    package init(seed: UInt64, leastWords: Int = 64) {
        self.leastWords = max(4, leastWords)
        sketch = FrequencySketch(words: self.leastWords)
        random = PolicyRandom(seed: seed)
        setTimeStep()
    }

    /// The bytes of memory used.
    package var bytes: Int { sketch.bytes }

    /// The time for the decay of weights, in steps of ``DensityWeight``.
    package var now: UInt32 { UInt32(truncatingIfNeeded: time >> 23) }

    /// Records a request for a key that is not held.
    ///
    /// - Returns: the mark for its row, if it gets one.
    package mutating func noteMiss(_ hash: UInt32) -> UInt8 {
        time &+= timeStep
        return mark(DensityWeight.weight(ofCount: sketch.add(hash)))
    }

    /// Records a request for a held key.
    ///
    /// - Returns: the mark that replaces the one in its row.
    package mutating func noteUse(_ mark: UInt8) -> UInt8 {
        time &+= timeStep
        return self.mark(DensityWeight.incremented(weight(mark)))
    }

    /// Records that a key, whose row had this mark, is no longer held.
    package mutating func noteGone(_ hash: UInt32, mark: UInt8) {
        let count = DensityWeight.count(of: weight(mark))
        if count > 1 { sketch.raise(hash, to: count) }
    }

    /// The logarithm of the frequency that a mark stands for now.
    package func weight(_ mark: UInt8) -> Int32 {
        let span: Int32 = 256 << Int32(Self.hiddenBits)
        let distance = Int32(bitPattern: (UInt32(mark) << Self.hiddenBits &- now) & UInt32(span - 1))
        // A mark may have been rounded up from the highest weight.
        return distance <= DensityWeight.highest + 1 << Int32(Self.hiddenBits) ? distance : distance - span
    }

    /// Adapts the sketch to the expected number of keys, and ages old requests. Call it now and then.
    ///
    /// - Parameters:
    ///   - held: the number of keys held now.
    ///   - used: the bytes of the capacity that they take.
    package mutating func fit(held: Int, used: Int, capacity: Int) {
        let full = used > 0 && used < capacity ? Double(held) * Double(capacity) / Double(used) : Double(held)
        fit(keys: Int(min(Double(held) * Self.headroom, full, 1e12)))
    }

    package mutating func fit(keys: Int) {
        let isHalved = halvings != time >> 32
        if isHalved {
            sketch.halve()
            halvings = time >> 32
        }
        let words = max(leastWords, max(0, min(keys, 1 << 32)) * Self.wordsForSixteen / 16)
        guard words > sketch.count / 4 * 5 || isHalved && words < sketch.count / 5 * 4 else { return }
        sketch = FrequencySketch(words: words)
        setTimeStep()
    }

    private mutating func setTimeStep() {
        timeStep = max(1, (1 << 32) / UInt64(sketch.count * 16 / Self.wordsForSixteen * Self.halfLife))
    }

    private mutating func mark(_ weight: Int32) -> UInt8 {
        let sum = UInt32(bitPattern: weight) &+ now
        let hidden = Int(sum & (1 << Self.hiddenBits - 1))
        let isUp = random.next(below: 1 << Int(Self.hiddenBits)) < hidden
        return UInt8(truncatingIfNeeded: sum >> Self.hiddenBits &+ (isUp ? 1 : 0))
    }
}
