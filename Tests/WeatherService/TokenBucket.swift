// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a client may still send: a bucket that drips full.
struct TokenBucket: Sendable, Equatable {
    private let capacity: Double
    private let refill: Double
    private var level: Double
    private var time: Double

    /// A full bucket.
    ///
    /// - Parameters:
    ///   - capacity: the most tokens it holds.
    ///   - refill: how many it gains a second.
    ///   - now: the time in seconds.
    init(capacity: Int, refill: Int, now: Double) {
        self.capacity = Double(capacity)
        self.refill = Double(refill)
        level = Double(capacity)
        time = now
    }

    /// Takes a token.
    ///
    /// - Returns: nil where there was one; else in how many whole seconds there will be one, at least 1.
    mutating func take(now: Double) -> Int? {
        level = min(capacity, level + max(now - time, 0) * refill)
        time = now
        if level >= 1 {
            level -= 1
            return nil
        }
        guard refill > 0 else { return 60 }
        return max(1, Int(((1 - level) / refill).rounded(.up)))
    }

    /// How many requests would be answered right now.
    var left: Int { Int(level) }
}
