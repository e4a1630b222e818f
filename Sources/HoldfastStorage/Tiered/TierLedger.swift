// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which keys are being changed and which are being promoted: what decides whether the upper tier may be believed.
///
/// While a key is changed, and from before the lower tier is touched until after the upper tier dropped it, look-ups pass the
/// upper tier by, so that nobody who saw the change sees the old state afterwards. A promotion of the key that was under way
/// is out of date from then on. See docs/decisions/storage/0014-tier-promotion.md.
struct TierLedger: Sendable {
    /// How many promotions run at once.
    static let maximumPromotions = 16

    private struct Promotion: Sendable {
        let bytes: Int
        var isCurrent = true
    }

    /// Bytes that all promotions under way may hold.
    let maximumBytes: Int
    private var changing: [StoreKey: Int] = [:]
    private var changesOfAll = 0
    private var promotions: [StoreKey: Promotion] = [:]
    private(set) var bytes = 0

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    /// Whether nothing is being promoted.
    var isIdle: Bool { promotions.isEmpty }

    /// Whether what the upper tier shows of `key` is what the lower one would show.
    func trusts(_ key: StoreKey) -> Bool {
        changesOfAll == 0 && changing[key] == nil
    }

    /// One key, or any if nil, is going to be changed.
    mutating func beginChange(of key: StoreKey?) {
        guard let key else {
            changesOfAll += 1
            for key in promotions.keys { promotions[key]?.isCurrent = false }
            return
        }
        changing[key, default: 0] += 1
        promotions[key]?.isCurrent = false
    }

    /// What ``beginChange(of:)`` told of is over, and the upper tier holds nothing from before it.
    mutating func endChange(of key: StoreKey?) {
        guard let key else {
            changesOfAll -= 1
            return
        }
        changing[key] = changing[key].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// Takes a promotion in, unless the key is being changed or promoted already, or too much is under way.
    mutating func beginPromotion(of key: StoreKey, bytes count: Int) -> Bool {
        guard trusts(key), promotions[key] == nil, promotions.count < TierLedger.maximumPromotions,
            count <= maximumBytes - bytes
        else { return false }
        promotions[key] = Promotion(bytes: count)
        bytes += count
        return true
    }

    /// Whether nothing changed the key since its promotion began.
    func isCurrent(_ key: StoreKey) -> Bool {
        promotions[key]?.isCurrent ?? false
    }

    /// A promotion is over, whatever came of it.
    mutating func endPromotion(of key: StoreKey) {
        guard let promotion = promotions.removeValue(forKey: key) else { return }
        bytes -= promotion.bytes
    }
}
