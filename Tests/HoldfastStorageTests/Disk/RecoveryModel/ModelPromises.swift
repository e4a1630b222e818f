// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What callers were told, in orders: what each reopened store is judged by.
struct ModelPromises: Hashable {
    static let identities: UInt8 = 3

    /// The key of an identity: 0 and 1 are variants of key 0, 2 is the one of key 1.
    static func key(_ identity: UInt8) -> UInt8 { identity / 2 }

    /// Whether a key begins with the prefix that is purged.
    static func hasPrefix(_ key: UInt8) -> Bool { key == 0 }

    /// What one identity was promised.
    struct Identity: Hashable {
        /// The highest order that was acknowledged.
        var acknowledged: UInt8 = 0
        /// Orders up to this one may be gone.
        var evicted: UInt8 = 0
        /// Orders up to this one are gone by an acknowledged kill.
        var killed: UInt8 = 0
        /// Orders up to this one may be gone by a kill that was begun.
        var killBegun: UInt8 = 0
        /// Bit n: order n was begun since the last opening and bears the tag.
        var taggedBegun: UInt64 = 0

        /// Whether nothing may be seen, whatever the tag did.
        var mayBeGone: Bool { acknowledged == 0 || acknowledged <= max(evicted, killed, killBegun) }
    }

    var of = [Identity](repeating: Identity(), count: Int(identities))
    var tagKilled: UInt8 = 0
    var tagKillBegun: UInt8 = 0
    var purgeAllBegun = false
    /// Bit n: order n bears the tag.
    var tagged: UInt64 = 0

    func isTagged(_ order: UInt8) -> Bool { tagged >> UInt64(order) & 1 == 1 }

    /// What is wrong with seeing `order` of `identity`, nil standing for nothing seen.
    func complaint(_ identity: UInt8, sees order: UInt8?) -> String? {
        let its = of[Int(identity)]
        guard let order else {
            if its.mayBeGone { return nil }
            let begun = max(tagKilled, tagKillBegun)
            if isTagged(its.acknowledged), its.acknowledged < begun { return nil }
            // A put that nobody was told of took its place, and the tag took that.
            let between = (its.acknowledged..<max(begun, its.acknowledged)).dropFirst()
            if between.contains(where: { its.taggedBegun >> UInt64($0) & 1 == 1 }) { return nil }
            return purgeAllBegun ? nil : "identity \(identity): acknowledged \(its.acknowledged) is missing"
        }
        if order < its.acknowledged { return "identity \(identity): \(order) seen, superseded by \(its.acknowledged)" }
        if order <= its.killed { return "identity \(identity): \(order) seen, killed by \(its.killed)" }
        if isTagged(order), order < tagKilled { return "identity \(identity): \(order) seen, purged by tag" }
        return nil
    }

    /// From a reopening on, what was seen is a promise, and so is that what is gone stays away unless it was evicted.
    mutating func settle(_ identity: UInt8, sees order: UInt8?) {
        let index = Int(identity)
        if let order {
            of[index].acknowledged = max(of[index].acknowledged, order)
        } else if of[index].acknowledged > of[index].evicted {
            of[index].killed = max(of[index].killed, of[index].acknowledged)
        }
        of[index].killBegun = of[index].killed
        of[index].taggedBegun = 0
    }
}
