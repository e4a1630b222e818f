// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How often keys were asked for of late: 8 bits in the row of each key that is held, and a sketch of those that are not.
///
/// The 8 bits are a logarithm that falls with time, as in ``DensityEntry``, in steps of an eighth and modulo 32: an entry that nobody
/// asked for through 23 half-lives looks new. What a step cannot tell is decided by a draw, so that uses count right on average.
/// Some 7 bytes a held key, all for the sketch. A use reads and writes nothing but the clock and the caller's 8 bits.
package struct KeyFrequencies: Sendable {
    /// Requests for each held key after which a frequency counts half.
    package static let halfLife = 30
    /// Words of the sketch for 16 keys.
    private static let wordsForSixteen = 14
    /// The most keys that the sketch is made for, for each key held.
    private static let headroom = 1.25
    /// Bits of a weight that its mark does not tell.
    package static let hiddenBits: UInt32 = 6

    private let leastWords: Int
    private var sketch: FrequencySketch
    private var random: PolicyRandom
    /// Half-lives since the start, times 2^32.
    private var time: UInt64 = 0
    private var timeStep: UInt64 = 0
    private var halvings: UInt64 = 0

    /// Nothing was asked for; `leastWords` of the sketch, at least 4, are there for the fewest keys.
    package init(seed: UInt64, leastWords: Int = 64) {
        self.leastWords = max(4, leastWords)
        sketch = FrequencySketch(words: self.leastWords)
        random = PolicyRandom(seed: seed)
        setTimeStep()
    }

    /// The bytes of memory taken.
    package var bytes: Int { sketch.bytes }

    /// The time by which weights fall, in steps of ``DensityWeight``.
    package var now: UInt32 { UInt32(truncatingIfNeeded: time >> 23) }

    /// Notes that a key was asked for and is not held.
    ///
    /// - Returns: the mark for its row, if it gets one.
    package mutating func noteMiss(_ hash: UInt32) -> UInt8 {
        time &+= timeStep
        return mark(DensityWeight.weight(ofCount: sketch.add(hash)))
    }

    /// Notes that a held key was asked for.
    ///
    /// - Returns: the mark to put in place of the one that its row has.
    package mutating func noteUse(_ mark: UInt8) -> UInt8 {
        time &+= timeStep
        return self.mark(DensityWeight.incremented(weight(mark)))
    }

    /// Notes that a key is held no longer, whose row had this mark.
    package mutating func noteGone(_ hash: UInt32, _ mark: UInt8) {
        let count = DensityWeight.count(of: weight(mark))
        if count > 1 { sketch.raise(hash, to: count) }
    }

    /// The logarithm of the frequency that a mark stands for, as it is now.
    package func weight(_ mark: UInt8) -> Int32 {
        let span: Int32 = 256 << Int32(Self.hiddenBits)
        let distance = Int32(bitPattern: (UInt32(mark) << Self.hiddenBits &- now) & UInt32(span - 1))
        // A mark may have been rounded up from the highest weight.
        return distance <= DensityWeight.highest + 1 << Int32(Self.hiddenBits) ? distance : distance - span
    }

    /// Lets the sketch follow the number of keys that will be held, and what is old weigh less. To be called now and then.
    ///
    /// - Parameters:
    ///   - held: the keys held now.
    ///   - used: the bytes that they take of the capacity.
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
