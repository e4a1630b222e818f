// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which keys are being changed and which are being promoted; decides whether the upper tier can be trusted.
///
/// While a key is being changed, from before the lower tier is touched until after the upper tier has dropped the key, lookups
/// bypass the upper tier. So nobody who saw the change sees the old state afterward. The change also invalidates a promotion of
/// the key that is in progress. See docs/decisions/storage/0014-tier-promotion.md.
struct TierCoherence: Sendable {
    /// The most promotions at once.
    static let maximumPromotions = 16

    private struct Promotion: Sendable {
        let bytes: Int
        var isCurrent = true
    }

    /// The most bytes that all promotions in progress may hold.
    let maximumBytes: Int
    private var changing: [StoreKey: Int] = [:]
    private var changesOfAll = 0
    private var promotions: [StoreKey: Promotion] = [:]
    private(set) var bytes = 0

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// Whether nothing is being promoted.
    var isIdle: Bool { promotions.isEmpty }

    /// Whether the upper tier shows the same for `key` as the lower one would.
    func trusts(_ key: StoreKey) -> Bool {
        changesOfAll == 0 && changing[key] == nil
    }

    /// Begins a change of one key, or of all keys if nil.
    mutating func beginChange(of key: StoreKey?) {
        guard let key else {
            changesOfAll += 1
            for key in promotions.keys { promotions[key]?.isCurrent = false }
            return
        }
        changing[key, default: 0] += 1
        promotions[key]?.isCurrent = false
    }

    /// Ends the change that ``beginChange(of:)`` began; the upper tier must hold nothing from before it.
    mutating func endChange(of key: StoreKey?) {
        guard let key else {
            changesOfAll -= 1
            return
        }
        changing[key] = changing[key].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// Registers a promotion, unless the key is already being changed or promoted, or there are too many promotions.
    mutating func beginPromotion(of key: StoreKey, bytes count: Int) -> Bool {
        guard trusts(key), promotions[key] == nil, promotions.count < TierCoherence.maximumPromotions,
            count <= maximumBytes - bytes
        else { return false }
        promotions[key] = Promotion(bytes: count)
        bytes += count
        return true
    }

    /// Whether the key is unchanged since its promotion began.
    func isCurrent(_ key: StoreKey) -> Bool {
        promotions[key]?.isCurrent ?? false
    }

    /// Ends a promotion, whatever its result.
    mutating func endPromotion(of key: StoreKey) {
        guard let promotion = promotions.removeValue(forKey: key) else { return }
        bytes -= promotion.bytes
    }
}
