// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Counts the hits of keys within a window, in memory of a fixed size.
///
/// Two tables of fingerprints with a counter each: the one that fills, and the full one before it. Keys that fall on the same
/// place push each other out, so a count may be too low; that two keys share a fingerprint too, so that one is too high, is one
/// case in thousands.
struct HitSketch: Sendable {
    private static let maximumCount: UInt16 = 3

    private let window: Int
    private let mask: Int
    /// Fourteen bits of fingerprint, two of count; 0: nothing.
    private var current: [UInt16]
    private var previous: [UInt16]
    private var noted = 0

    /// A sketch that remembers a key for `window` hits at least, as far as others leave it its place.
    init(window: Int) {
        self.window = max(1, window)
        var places = 64
        while places < 2 * self.window { places *= 2 }
        mask = places - 1
        current = [UInt16](repeating: 0, count: places)
        previous = current
    }

    /// Notes a hit of the key with this hash.
    ///
    /// - Returns: how many hits of it are remembered from before, 3 at most.
    mutating func note(_ hash: UInt64) -> Int {
        let place = Int(truncatingIfNeeded: hash) & mask
        // Never 0, so that an empty place matches nothing.
        let fingerprint = UInt16(truncatingIfNeeded: hash >> 48) | 4
        let before = min(
            HitSketch.maximumCount,
            HitSketch.count(current[place], fingerprint) + HitSketch.count(previous[place], fingerprint)
        )
        let here = HitSketch.count(current[place], fingerprint)
        current[place] = (fingerprint & ~3) | min(HitSketch.maximumCount, here + 1)
        noted += 1
        if noted >= window {
            noted = 0
            swap(&current, &previous)
            for index in current.indices { current[index] = 0 }
        }
        return Int(before)
    }

    private static func count(_ cell: UInt16, _ fingerprint: UInt16) -> UInt16 {
        cell & ~3 == fingerprint & ~3 ? cell & 3 : 0
    }
}
