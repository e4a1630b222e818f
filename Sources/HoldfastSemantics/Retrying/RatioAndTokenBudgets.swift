// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// The budgets of other clients. They count, and do not know the state of the server.

/// The parameters of ``RetryBudget/tokens(capacity:transient:timeout:throttling:reward:)``.
package struct TokenRules: Sendable, Hashable {
    var capacity: Int
    var transient: Int
    var timeout: Int
    var throttling: Int
    var reward: Int

    private static let most = 1_000_000_000

    var problem: String? {
        let figures = [
            ("capacity", capacity), ("transient", transient), ("timeout", timeout), ("throttling", throttling),
        ]
        for (name, figure) in figures where !(1...TokenRules.most ~= figure) {
            return "\(name) \(figure) is not a number of tokens; use 1 to \(TokenRules.most)."
        }
        guard 0...TokenRules.most ~= reward else {
            return "reward \(reward) is not a number of tokens; use 0 (no reward) to \(TokenRules.most)."
        }
        for (name, figure) in figures where figure > capacity {
            return "\(name) \(figure) is more than capacity \(capacity), so no such retry is ever made; use less."
        }
        return nil
    }

    /// The same rules with each number limited to its range.
    var bounded: TokenRules {
        func within(_ figure: Int, least: Int) -> Int { min(max(figure, least), TokenRules.most) }
        return TokenRules(
            capacity: within(capacity, least: 1),
            transient: within(transient, least: 1),
            timeout: within(timeout, least: 1),
            throttling: within(throttling, least: 1),
            reward: within(reward, least: 0)
        )
    }

    func cost(of cause: RetryCause) -> Int {
        switch cause {
        case .transient, .hedge: transient
        case .timeout: timeout
        case .throttling: throttling
        }
    }
}

/// A bucket of tokens as in the AWS SDKs; independent of time.
struct TokenBalance: Sendable, Hashable {
    private let rules: TokenRules
    private(set) var tokens: Int

    init(_ rules: TokenRules) {
        self.rules = rules.bounded
        tokens = self.rules.capacity
    }

    /// How many retries after transient failures are left.
    var retries: Int { tokens / rules.transient }

    /// Takes the cost of a retry and returns it, or nil if there are not enough tokens.
    mutating func take(_ cause: RetryCause) -> Int? {
        let cost = rules.cost(of: cause)
        guard tokens >= cost else { return nil }
        tokens -= cost
        return cost
    }

    var isRested: Bool { tokens == rules.capacity }

    /// Returns a retry's cost.
    mutating func add(_ cost: Int) {
        tokens = min(rules.capacity, tokens + cost)
    }

    /// Adds the reward for a success without a retry.
    mutating func reward() {
        add(rules.reward)
    }
}

/// The token count of gRPC's retry throttling (A6), in thousandths; failures take tokens, retries do not.
struct FailureThrottle: Sendable, Hashable {
    private static let scale = 1000
    private let most: Int
    private let reward: Int
    private(set) var thousandths: Int

    init(maxTokens: Int, tokenRatio: Double) {
        most = min(max(maxTokens, 1), 1000) * FailureThrottle.scale
        let bounded = tokenRatio > 0 ? min(tokenRatio, 1000) : 0
        // A6 ignores decimals after the third. A billionth of a token is added so that 0.29 × 1000 does not count as 289.
        reward = Int(bounded * Double(FailureThrottle.scale) + 1e-6)
        thousandths = most
    }

    /// Whether retries and hedges are allowed: only with more than half of all tokens.
    var allows: Bool { 2 * thousandths > most }

    var isRested: Bool { thousandths == most }

    /// How many retries in a row could fail before no more are allowed.
    var retries: Int {
        let above = 2 * thousandths - most
        return above > 0 ? (above + 2 * FailureThrottle.scale - 1) / (2 * FailureThrottle.scale) : 0
    }

    mutating func attemptEnded(succeeded: Bool) {
        thousandths = succeeded ? min(most, thousandths + reward) : max(0, thousandths - FailureThrottle.scale)
    }

    static func problem(maxTokens: Int, tokenRatio: Double) -> String? {
        guard 1...1000 ~= maxTokens else { return "maxTokens \(maxTokens) is out of range; use 1 to 1000." }
        guard tokenRatio >= 0.001, tokenRatio <= Double(maxTokens) else {
            return "tokenRatio \(tokenRatio) is out of range; use 0.001 to maxTokens, \(maxTokens)."
        }
        return nil
    }
}

/// The parameters of ``RetryBudget/ratio(_:reservePerSecond:timeToLive:)``.
package struct RatioRules: Sendable, Hashable {
    var share: Double
    var reservePerSecond: Double
    var timeToLive: Duration

    var problem: String? {
        guard share > 0, share <= 1000 else {
            return "share \(share) is not a share of the calls; use more than 0, such as 0.1, and at most 1000."
        }
        guard reservePerSecond >= 0, reservePerSecond <= 1_000_000 else {
            return
                "reservePerSecond \(reservePerSecond) is not a rate; use 0 to 1000000, and note that each process has it."
        }
        guard timeToLive >= .milliseconds(10), timeToLive <= .seconds(3600) else {
            return "timeToLive \(timeToLive) is not a time to remember calls for; use 10 ms to an hour."
        }
        return nil
    }
}

/// What the deposits of calls leave for retries: a sum over ten slots of time, and a reserve.
///
/// Counted in millionths of a retry, so that a share such as 0.3 is exact, and adding and subtracting never drift. Withdrawals
/// expire with their slot, as deposits do: within any time to live there are at most share × calls + reserve retries.
struct RatioBalance: Sendable, Hashable {
    private static let slotCount: Int64 = 10
    /// Units of one retry.
    static let scale: Int64 = 1_000_000
    /// Ten slots of this size fit with room to spare. Not Int, which has 32 bits on some systems.
    private static let most: Int64 = 1 << 58

    private let deposit: Int64
    private let reserve: Int64
    private let slotLength: Int64
    /// Sixteen lanes, of which ten are used; stored in place, unlike an array.
    private var slots = SIMD16<Int64>()
    /// The number of the latest slot, counted from time 0.
    private var current: Int64

    init(_ rules: RatioRules, now: Duration) {
        let life = min(max(rules.timeToLive, .milliseconds(10)), .seconds(3600))
        deposit = RatioBalance.scaled(min(rules.share, 1000))
        reserve = RatioBalance.scaled(min(rules.reservePerSecond, 1_000_000) * life.doubleSeconds)
        slotLength = life.wholeNanoseconds / RatioBalance.slotCount
        current = now.wholeNanoseconds / slotLength
    }

    /// The cost of a retry.
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

    /// Takes one retry and returns the slot that it was taken from, or nil if nothing is left.
    mutating func take(now: Duration) -> Int64? {
        advance(to: now)
        guard left >= RatioBalance.scale else { return nil }
        add(-RatioBalance.scale, to: current)
        return current
    }

    /// Returns what was taken from a slot; does nothing if the slot is already forgotten.
    mutating func giveBack(_ amount: Int, from slot: Int64, now: Duration) {
        advance(to: now)
        guard slot <= current, slot > current - RatioBalance.slotCount else { return }
        add(Int64(amount), to: slot)
    }

    /// Whether it equals a new one.
    func isRested(now: Duration) -> Bool {
        var copy = self
        copy.advance(to: now)
        return copy.slots == SIMD16()
    }

    /// When the next slot begins: the earliest time at which more may be left.
    func nextSlot(now: Duration) -> Duration {
        .nanoseconds((now.wholeNanoseconds / slotLength + 1) * slotLength)
    }

    private var left: Int64 { slots.wrappedSum() + reserve }

    /// Removes slots that are too old. A clock that stands still or goes back changes nothing.
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
    /// Whole nanoseconds, limited to 126 years in both directions so that nothing overflows.
    var wholeNanoseconds: Int64 {
        let bounded = min(max(self, .seconds(-4_000_000_000)), .seconds(4_000_000_000))
        let (seconds, attoseconds) = bounded.components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
