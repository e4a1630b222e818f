// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What each tier of a ``TieredStore`` has counted.
public struct TierStatistics: Sendable, Hashable {
    /// The upper tier. Its lookups are all lookups of the whole store, ``StoreStatistics/lookupsFound`` those that it answered. Its
    /// entries written are the promoted ones, one for each variant.
    public var upper: StoreStatistics
    /// The lower tier: only the lookups that the upper one did not answer, and one more for each promotion.
    public var lower: StoreStatistics
    /// Promotions that were completed.
    public var promotions: Int
    /// Body bytes that promotions copied.
    public var bytesPromoted: Int
    /// Promotions that were given up: the key changed meanwhile, there were too many, or the upper tier had no room.
    public var promotionsDropped: Int

    /// Statistics with these parts.
    public init(
        upper: StoreStatistics,
        lower: StoreStatistics,
        promotions: Int = 0,
        bytesPromoted: Int = 0,
        promotionsDropped: Int = 0
    ) {
        self.upper = upper
        self.lower = lower
        self.promotions = promotions
        self.bytesPromoted = bytesPromoted
        self.promotionsDropped = promotionsDropped
    }

    /// The share of all lookups that the upper tier answered; 0 before the first one.
    public var upperHitRatio: Double {
        upper.lookups == 0 ? 0 : Double(upper.lookupsFound) / Double(upper.lookups)
    }
}
