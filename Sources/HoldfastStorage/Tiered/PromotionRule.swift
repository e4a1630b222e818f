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
