// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The parameters of ``RetryBudget/ratio(_:reservePerSecond:timeToLive:refunds:window:)``.
package struct RatioRules: Sendable, Hashable {
    var share: Double
    var reservePerSecond: Double
    var timeToLive: Duration
    var refunds: Bool
    var window: RetryWindow?

    var problem: String? {
        guard share > 0, share <= 1000 else {
            return "share \(share) is no share of the calls; use more than 0, such as 0.1, and at most 1000."
        }
        guard reservePerSecond >= 0, reservePerSecond <= 1_000_000 else {
            return
                "reservePerSecond \(reservePerSecond) is no rate; use 0 to 1000000, and remember that each process has it."
        }
        guard timeToLive >= .milliseconds(10), timeToLive <= .seconds(3600) else {
            return "timeToLive \(timeToLive) is no time to remember calls for; use 10 ms to an hour."
        }
        return window?.problem
    }
}

/// What the deposits of calls have left for retries: a sum over ten slots of time, and a reserve.
///
/// In millionths of a retry, so a share such as 0.3 is exact, and adding and subtracting never drift. What was taken expires
/// with its slot as deposits do: over any time to live there are at most share × calls + reserve retries.
struct RatioBalance: Sendable, Hashable {
    private static let slotCount: Int64 = 10
    /// Of one retry.
    static let scale: Int64 = 1_000_000
    /// Ten slots of this size still fit with room to spare. Not Int: there are systems where that has 32 bits.
    private static let most: Int64 = 1 << 58

    private let deposit: Int64
    private let reserve: Int64
    private let slotLength: Int64
    /// Sixteen lanes, ten in use: in place, unlike an array.
    private var slots = SIMD16<Int64>()
    /// The number of the youngest slot, counted from time 0.
    private var current: Int64

    init(_ rules: RatioRules, now: Duration) {
        let life = min(max(rules.timeToLive, .milliseconds(10)), .seconds(3600))
        deposit = RatioBalance.scaled(min(rules.share, 1000))
        reserve = RatioBalance.scaled(min(rules.reservePerSecond, 1_000_000) * life.doubleSeconds)
        slotLength = life.wholeNanoseconds / RatioBalance.slotCount
        current = now.wholeNanoseconds / slotLength
    }

    /// What a retry costs.
    var cost: Int { Int(RatioBalance.scale) }

    /// How many retries are left.
    func retries(now: Duration) -> Int {
        var copy = self
        copy.advance(to: now)
        return Int(clamping: max(0, copy.left / RatioBalance.scale))
    }

    mutating func callBegan(now: Duration) {
        advance(to: now)
        add(deposit, to: current)
    }

    /// Takes one retry; returns the slot it was taken from, or nil if nothing is left.
    mutating func take(now: Duration) -> Int64? {
        advance(to: now)
        guard left >= RatioBalance.scale else { return nil }
        add(-RatioBalance.scale, to: current)
        return current
    }

    /// Adds what a retry that succeeded had cost.
    mutating func refund(_ amount: Int, now: Duration) {
        advance(to: now)
        add(Int64(amount), to: current)
    }

    /// Undoes what was taken from a slot; nothing if that is forgotten already.
    mutating func giveBack(_ amount: Int, from slot: Int64, now: Duration) {
        advance(to: now)
        guard slot <= current, slot > current - RatioBalance.slotCount else { return }
        add(Int64(amount), to: slot)
    }

    private var left: Int64 { slots.wrappedSum() + reserve }

    /// Forgets the slots that are too old. A clock that stands still or goes back changes nothing.
    private mutating func advance(to now: Duration) {
        let slot = now.wholeNanoseconds / slotLength
        guard slot > current else { return }
        if slot - current >= RatioBalance.slotCount {
            slots = SIMD16()
        } else {
            for old in current + 1...slot { slots[RatioBalance.lane(of: old)] = 0 }
        }
        current = slot
    }

    private mutating func add(_ amount: Int64, to slot: Int64) {
        let lane = RatioBalance.lane(of: slot)
        slots[lane] = min(RatioBalance.most, max(-RatioBalance.most, slots[lane] + amount))
    }

    private static func lane(of slot: Int64) -> Int {
        let remainder = slot % slotCount
        return Int(remainder < 0 ? remainder + slotCount : remainder)
    }

    private static func scaled(_ value: Double) -> Int64 {
        value > 0 ? Int64(value * Double(scale) + 0.5) : 0
    }
}

extension Duration {
    /// Whole nanoseconds, bounded at 126 years to both sides so that nothing overflows.
    var wholeNanoseconds: Int64 {
        let bounded = min(max(self, .seconds(-4_000_000_000)), .seconds(4_000_000_000))
        let (seconds, attoseconds) = bounded.components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
