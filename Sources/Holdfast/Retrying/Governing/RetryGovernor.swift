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

    private struct Entry {
        let account: RetryAccount
        var lastUse: UInt64
    }

    private struct State {
        var entries: [OriginText: Entry] = [:]
        var latest: (origin: OriginText, account: RetryAccount)?
        var uses: UInt64 = 0
        var generator: any RandomNumberGenerator & Sendable

        /// Makes room for many at once, so that a flood of origins does not look through all of them each time.
        mutating func forgetHalf(now: MonotonicInstant) {
            let idle = entries.filter { $0.key != latest?.origin && !$0.value.account.isBusy(now: now) }
            // Where all are busy the oldest go all the same: the number is bounded whatever happens.
            let oldest = (idle.isEmpty ? entries : idle).sorted { $0.value.lastUse < $1.value.lastUse }.prefix(RetryGovernor.limit / 2)
            for (origin, _) in oldest { entries[origin] = nil }
        }
    }

    /// The most origins that are known at once.
    static let limit = 1024

    private let state: Mutex<State>

    /// A governor that knows nothing yet.
    ///
    /// - Parameters:
    ///   - rules: the rules; ``RetryRules/validate()`` must not refuse them.
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
            preconditionFailure("RetryRules.\(error)")
        }
        inForce = RulesInForce(rules)
        self.connectivity = connectivity
        state = Mutex(State(generator: generator))
    }

    /// How it stands with the origin of a URL; nil where it was never called.
    ///
    /// - Parameter now: by the clock of the pipelines that use this governor.
    public func status(of url: URL, now: MonotonicInstant) -> RetryStatus? {
        let account = state.withLock { $0.entries[OriginText(url.absoluteString)]?.account }
        return account?.status(now: now)
    }

    /// The state that calls to the request's origin share.
    func account(for request: URLRequest, now: MonotonicInstant) -> RetryAccount {
        let origin = OriginText(request)
        return state.withLock { state in
            // Most clients talk to one origin: comparing its text is cheaper than hashing it.
            if let latest = state.latest, latest.origin == origin { return latest.account }
            state.uses += 1
            let account: RetryAccount
            let owned: OriginText
            if let index = state.entries.index(forKey: origin) {
                account = state.entries.values[index].account
                owned = state.entries.keys[index]
                state.entries.values[index].lastUse = state.uses
            } else {
                if state.entries.count >= RetryGovernor.limit { state.forgetHalf(now: now) }
                account = RetryAccount(inForce, now: now)
                owned = OriginText(copying: origin)
                state.entries[owned] = Entry(account: account, lastUse: state.uses)
            }
            state.latest = (owned, account)
            return account
        }
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
            governor.state.withLock { $0.generator.next() }
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
