// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many retries may be in flight at once, learned from how retries end: more while they succeed, half after a failure.
///
/// The window is what lets a server come back: while nothing succeeds one retry at a time asks how it is.
public struct RetryWindow: Sendable, Hashable {
    /// How many retries may be in flight before anything is known; 1 by default.
    public var start = 1

    /// What the window grows by with each retry that succeeds; 3 by default.
    ///
    /// With 1, as AIMD has it, three retries in ten that fail keep the window near 1, and calls fail that a retry would have
    /// saved. A retry that fails halves the window in any case, so this changes nothing while a server is down. Its price is
    /// paid by parked retries alone: those of fifty processes, released after a long outage, peak at four times what the server
    /// can do for a moment, instead of 3.4 times.
    public var growth = 3

    /// The most retries in flight; 16 by default. With 8 that peak falls to 2.4 times; where three attempts in ten fail, one
    /// call in a thousand more is lost by those that do not park.
    public var limit = 16

    /// The defaults.
    public init() {}

    /// A window that differs from the defaults.
    public init(start: Int = 1, growth: Int = 3, limit: Int = 16) {
        self.start = start
        self.growth = growth
        self.limit = limit
    }

    /// What is wrong with a value, or nil.
    package var problem: String? {
        guard 1...RetryWindow.most ~= limit else {
            return "window limit \(limit) is no number of retries; use 1 to \(RetryWindow.most)."
        }
        guard 1...limit ~= start else {
            return "window start \(start) is not within the window; use 1 to its limit, \(limit)."
        }
        guard 1...RetryWindow.most ~= growth else {
            return "window growth \(growth) is no number of retries; use 1 to \(RetryWindow.most)."
        }
        return nil
    }

    static let most = 1_000_000
}

/// The present size of a ``RetryWindow``, in whole parts of a retry: halving rounds down, nothing drifts.
struct RetryWindowSize: Sendable, Hashable {
    private static let scale: Int64 = 1 << 20
    private let limit: Int64
    private let growth: Int64
    private var scaled: Int64

    init(_ window: RetryWindow) {
        limit = Int64(min(max(window.limit, 1), RetryWindow.most)) * RetryWindowSize.scale
        growth = Int64(min(max(window.growth, 0), RetryWindow.most)) * RetryWindowSize.scale
        scaled = min(limit, Int64(max(1, min(window.start, RetryWindow.most))) * RetryWindowSize.scale)
    }

    /// How many retries may be in flight.
    var retries: Int { Int(scaled / RetryWindowSize.scale) }

    mutating func retryEnded(succeeded: Bool) {
        scaled = succeeded ? min(limit, scaled + growth) : max(RetryWindowSize.scale, scaled / 2)
    }
}
