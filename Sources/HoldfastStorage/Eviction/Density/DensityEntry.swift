// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A slot's record in ``DensityTinyLFUPolicy``: 12 bytes.
struct DensityEntry: Sendable {
    /// Where an entry is.
    enum Place: UInt32 {
        case absent, window, usedInWindow, main
    }

    /// 32 bits of the key's hash.
    var hash: UInt32 = 0
    /// Bytes; `UInt32.max` means that the number is stored elsewhere.
    var size: UInt32 = 0
    /// From the highest bit: 24 bits of the weight; 5 of the count of stale items in the window's queue; 1 for whether the main
    /// array has an item; 2 of the place.
    private var bits: UInt32 = 0

    /// Where the entry is.
    var place: Place {
        get { Place(rawValue: bits & 3) ?? .absent }
        set { bits = bits & ~3 | newValue.rawValue }
    }

    /// Whether the main array has an item for the slot, even if the entry is elsewhere.
    var isListed: Bool {
        get { bits & 4 != 0 }
        set { bits = newValue ? bits | 4 : bits & ~4 }
    }

    /// How many items for the slot precede the valid one in the window's queue: 0 to 31.
    var staleItems: UInt32 {
        get { bits >> 3 & 31 }
        set { bits = bits & ~(31 << 3) | newValue << 3 }
    }

    /// The logarithm of the frequency at the time `now`, see ``DensityWeight``.
    func weight(at now: UInt32) -> Int32 {
        DensityWeight.unpack(bits, at: now)
    }

    /// Stores the logarithm of the frequency at the time `now`.
    mutating func setWeight(_ weight: Int32, at now: UInt32) {
        bits = DensityWeight.pack(weight, at: now, over: bits)
    }
}

/// Logarithms to base 2 in steps of 1/512, used as weights: of frequencies that halve with time, and of sizes.
///
/// Time runs in the same steps; one half-life is 512 of them. An entry's weight falls by itself: the stored value is the weight
/// plus the time of storing it, so comparing weights needs no multiplication. Integers, so that every platform gives the same
/// results.
enum DensityWeight {
    /// The steps of one half-life, and of one doubling.
    static let unit = 512
    /// A frequency counts as at most 256.
    static let highest: Int32 = 8 * 512

    /// The weight of the value of `weight` plus 1.
    static func incremented(_ weight: Int32) -> Int32 {
        let distance = Int(weight.magnitude)
        let index = distance >> 6
        var gain = 0
        if index < gains.count - 1 {
            let (left, right) = (Int(gains[index]), Int(gains[index + 1]))
            gain = left - ((left - right) * (distance & 63)) >> 6
        }
        return min(highest, min(highest, max(0, weight)) + Int32(truncatingIfNeeded: gain))
    }

    /// The weight of a count from 0 to 15; 0 counts as 1.
    static func weight(ofCount count: Int) -> Int32 { Int32(logarithms[count & 15]) }

    /// The count, 0 to 15, that a weight stands for, rounded.
    static func count(of weight: Int32) -> Int {
        if weight < -Int32(unit) { return 0 }
        var count = 1
        while count < 15, weight >= Int32(halfway[count - 1]) { count += 1 }
        return count
    }

    /// The weight of a size; 0 counts as 1. Off by up to 0.09 between powers of two.
    static func weight(ofSize size: UInt32) -> Int {
        // A Float's bits from the exponent on are the logarithm, with a linear fraction.
        Int(Float(max(1, size)).bitPattern >> 14) - 127 * unit
    }

    /// Puts a weight at the time `now` into the upper 24 bits of a word.
    static func pack(_ weight: Int32, at now: UInt32, over bits: UInt32) -> UInt32 {
        bits & 0xFF | (UInt32(bitPattern: weight) &+ now) << 8
    }

    /// The weight in the upper 24 bits of a word, as it is at the time `now`.
    static func unpack(_ bits: UInt32, at now: UInt32) -> Int32 {
        Int32(bitPattern: (bits & ~0xFF) &- now << 8) >> 8
    }

    /// The weight of frequency / size^beta, `beta` in 1/1024.
    @inline(__always)
    static func score(_ weight: Int32, size: UInt32, beta: Int) -> Int {
        Int(weight) - (self.weight(ofSize: size) * beta) >> 10
    }

    /// log2(1 + 2^-x) for x from 0, in steps of 1/8.
    private static let gains: [Int16] = [
        512, 481, 451, 422, 395, 369, 345, 321, 300, 279, 259, 241, 224, 207, 192, 178, 165, 152, 141, 130, 120, 111,
        102, 94, 87, 80, 74, 68, 63, 58, 53, 49, 45, 41, 38, 35, 32, 29, 27, 25, 23, 21, 19, 18, 16, 15, 14, 12, 11, 11,
        10, 9, 8, 7, 7, 6, 6, 5, 5, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    ]
    private static let logarithms: [Int16] = [
        0, 0, 512, 812, 1024, 1189, 1324, 1437, 1536, 1623, 1701, 1771, 1836, 1895, 1949, 2000,
    ]
    /// log2 of 1.5, 2.5 and so on.
    private static let halfway: [Int16] = [
        300, 677, 925, 1111, 1259, 1383, 1488, 1581, 1663, 1737, 1804, 1866, 1923, 1975,
    ]
}
