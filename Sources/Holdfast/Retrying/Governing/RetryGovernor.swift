// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    public import Foundation
    internal import FoundationNetworking
#else
    public import Foundation
#endif

/// What all calls of a retrier factory share: the budgets, gates and counts of each origin.
///
/// Make one and keep it as long as the client; pipelines that share it must go by the same clock. Safe to use from any
/// number of tasks. Knows 1,024 origins; when there are more, those that are idle and were called longest ago are forgotten.
public final class RetryGovernor: Sendable {
    /// The rules it goes by.
    public var rules: RetryRules { inForce.rules }
    let inForce: RulesInForce
    /// Says whether the machine is online; nil: nobody asks.
    public let connectivity: (any Connectivity)?

    /// The most origins that are known at once, of busy ones aside.
    static let limit = 1024

    private let accounts: OriginTable<RetryAccount>
    private let random: Mutex<any RandomNumberGenerator & Sendable>

    /// A governor that knows nothing yet.
    ///
    /// - Parameters:
    ///   - rules: the rules; `RetryRules.validate()` must not refuse them.
    ///   - connectivity: says whether the machine is online, for `rules.waitsForConnectivity`.
    ///   - generator: the source of the spread behind gates and of parked retries; seeded in tests.
    public init(
        _ rules: RetryRules = .default,
        connectivity: (any Connectivity)? = nil,
        generator: sending any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        do throws(RetryRulesError) {
            try rules.validate()
        } catch {
            // A mistake of the program, not of its input: it would run with a budget or waits that nobody meant.
            preconditionFailure("RetryRules.\(error)")
        }
        let inForce = RulesInForce(rules)
        self.inForce = inForce
        self.connectivity = connectivity
        random = Mutex(generator)
        accounts = OriginTable(capacity: RetryGovernor.limit, isIdle: { !$0.isBusy(now: $1) }) { now in
            RetryAccount(inForce, now: now)
        }
    }

    /// How it stands with the origin of a URL; nil where it was never called.
    ///
    /// - Parameters:
    ///   - url: any URL of the origin: scheme, host and port count.
    ///   - now: by the clock of the pipelines that use this governor.
    public func status(of url: URL, now: MonotonicInstant) -> RetryStatus? {
        accounts.existingCell(of: OriginText(url.absoluteString))?.status(now: now)
    }

    /// The state that calls to the request's origin share.
    func account(for request: URLRequest, now: MonotonicInstant) -> RetryAccount {
        accounts.cell(of: OriginText(request), now: now)
    }

    /// The governor's source of randomness, which all its users draw from.
    var generator: Generator { Generator(governor: self) }

    /// A sample from 0 up to but not including 1.
    func sample() -> Double {
        var generator = generator
        return Double.random(in: 0..<1, using: &generator)
    }

    /// Draws from the generator of a governor.
    struct Generator: RandomNumberGenerator {
        let governor: RetryGovernor

        func next() -> UInt64 {
            governor.random.withLock { $0.next() }
        }
    }
}

extension OriginText {
    /// The same text in storage of its own, so that a long URL is not kept for the sake of its beginning.
    init(copying other: OriginText) {
        text = String(other.text)[...]
    }
}

/// Rules in one place: a call looks at a few of them and should not have to copy them all.
final class RulesInForce: Sendable {
    let rules: RetryRules

    init(_ rules: RetryRules) {
        self.rules = rules
    }
}
