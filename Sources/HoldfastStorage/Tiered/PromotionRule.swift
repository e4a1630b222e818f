// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// When an entry that was found in the lower tier is copied into the upper one.
///
/// A rule is a value without effects: a sketch of counts remembers, and the store asks once for each hit that the lower tier
/// answered. The figures behind the default are in docs/decisions/storage/0014-tier-promotion.md.
public struct PromotionRule: Sendable, Hashable {
    /// On which hit within the window an entry is promoted: 1 the first, 2 the second, and so on up to 4.
    public let hits: Int
    /// How many hits of the lower tier an earlier hit of the same key is remembered for, at least; 1 to 1,048,576.
    public let window: Int
    /// The upper tier's capacity divided by this is the longest body it takes; at least 1.
    public let share: Int

    /// A rule; numbers out of their range are moved to its end.
    ///
    /// - Parameters:
    ///   - hits: on which hit of the lower tier an entry is promoted.
    ///   - window: for how many hits of the lower tier an earlier one counts, at least, and twice as many at most. Costs
    ///     8 to 16 bytes of memory each, where `hits` is more than 1.
    ///   - share: the part of the upper tier that one body may fill: 16 means a sixteenth.
    public init(hits: Int, window: Int = 1_024, share: Int = 16) {
        self.hits = min(max(1, hits), 4)
        self.window = min(max(1, window), 1 << 20)
        self.share = max(1, share)
    }

    /// Promotes at the first hit whatever fills no more than a sixteenth of the upper tier.
    public static let firstHit = PromotionRule(hits: 1)
    /// Promotes at the second hit within 1,024 hits: a third of the copies for the same share of hits from memory.
    public static let secondHit = PromotionRule(hits: 2)

    /// The longest body that an upper tier of this capacity takes.
    public func maximumBody(capacity: Int) -> Int {
        max(0, capacity) / share
    }

    /// Whether an entry is promoted at this hit.
    ///
    /// - Parameters:
    ///   - bodyLength: the length of its body.
    ///   - earlierHits: how often its key was hit within the window before.
    ///   - capacity: of the upper tier, in bytes.
    public func promotes(bodyLength: Int, earlierHits: Int, capacity: Int) -> Bool {
        bodyLength <= maximumBody(capacity: capacity) && earlierHits >= hits - 1
    }
}

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
