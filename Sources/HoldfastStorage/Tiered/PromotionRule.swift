// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// When an entry that was found in the lower tier is copied into the upper one.
///
/// A rule is a value without effects: the store counts hits in a sketch and asks the rule once for each hit of the lower tier. The
/// measurements behind the default are in docs/decisions/storage/0014-tier-promotion.md.
public struct PromotionRule: Sendable, Hashable {
    /// The hit within the window that promotes an entry: 1 the first, 2 the second, and so on up to 4.
    public let hits: Int
    /// For how many hits of the lower tier, at least, a hit of a key is remembered; 1 to 1,048,576.
    public let window: Int
    /// The upper tier's capacity divided by this is the longest body that it takes; at least 1.
    public let share: Int

    /// A rule; numbers out of range are clamped.
    ///
    /// - Parameters:
    ///   - hits: which hit of the lower tier promotes an entry.
    ///   - window: for how many hits of the lower tier a hit is remembered, at least; at most twice as many. Costs 8 to 16 bytes of
    ///     memory each, if `hits` is more than 1.
    ///   - share: the part of the upper tier that one body may fill: 16 means 1/16.
    public init(hits: Int, window: Int = 1_024, share: Int = 16) {
        self.hits = min(max(1, hits), 4)
        self.window = min(max(1, window), 1 << 20)
        self.share = max(1, share)
    }

    /// Promotes at the first hit, unless the body is more than 1/16 of the upper tier's capacity.
    public static let firstHit = PromotionRule(hits: 1)
    /// Promotes at the second hit within 1,024 hits: a third of the copies, for the same share of hits from memory.
    public static let secondHit = PromotionRule(hits: 2)

    /// The longest body for an upper tier of this capacity.
    public func maximumBody(capacity: Int) -> Int {
        max(0, capacity) / share
    }

    /// Whether this hit promotes an entry.
    ///
    /// - Parameters:
    ///   - bodyLength: the length of its body.
    ///   - earlierHits: how many earlier hits its key had within the window.
    ///   - capacity: of the upper tier, in bytes.
    public func promotes(bodyLength: Int, earlierHits: Int, capacity: Int) -> Bool {
        bodyLength <= maximumBody(capacity: capacity) && earlierHits >= hits - 1
    }
}

/// Counts the hits of keys within a window, in memory of a fixed size.
///
/// Two tables of fingerprints with a counter each: the one being filled, and the full one before it. Keys with the same place
/// replace each other, so a count may be too low. It is too high only if two keys also have the same fingerprint, one case in
/// thousands.
struct HitSketch: Sendable {
    private static let maximumCount: UInt16 = 3

    private let window: Int
    private let mask: Int
    /// Fourteen bits of fingerprint, two of count; 0: empty.
    private var current: [UInt16]
    private var previous: [UInt16]
    private var noted = 0

    /// A sketch that remembers a key for at least `window` hits, unless another key takes its place.
    init(window: Int) {
        self.window = max(1, window)
        var places = 64
        while places < 2 * self.window { places *= 2 }
        mask = places - 1
        current = [UInt16](repeating: 0, count: places)
        previous = current
    }

    /// Records a hit of the key with this hash.
    ///
    /// - Returns: how many earlier hits of it are remembered, at most 3.
    mutating func note(_ hash: UInt64) -> Int {
        let place = Int(truncatingIfNeeded: hash) & mask
        // Never 0, so that an empty place matches nothing.
        let fingerprint = UInt16(truncatingIfNeeded: hash >> 48) | 4
        let here = HitSketch.count(current[place], fingerprint: fingerprint)
        let before = min(HitSketch.maximumCount, here + HitSketch.count(previous[place], fingerprint: fingerprint))
        current[place] = (fingerprint & ~3) | min(HitSketch.maximumCount, here + 1)
        noted += 1
        if noted >= window {
            noted = 0
            swap(&current, &previous)
            for index in current.indices { current[index] = 0 }
        }
        return Int(before)
    }

    private static func count(_ cell: UInt16, fingerprint: UInt16) -> UInt16 {
        cell & ~3 == fingerprint & ~3 ? cell & 3 : 0
    }
}
