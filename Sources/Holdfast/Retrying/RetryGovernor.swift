// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The budgets, gates and counts of each origin, which all calls of a retrier factory share.
///
/// Make one and keep it as long as the client; pipelines that share it must use the same clock. Safe to use from any number of
/// tasks. Remembers 1,024 origins; if there are more, idle origins with a full budget are forgotten, those called longest ago
/// first, and beyond 4,096 the others as well.
public final class RetryGovernor: Sendable {
    /// The rules that it applies.
    public var rules: RetryRules { inForce.rules }
    let inForce: RulesInForce
    /// Says whether the machine is online; nil: not checked.
    public let connectivity: (any Connectivity)?

    /// The most origins remembered at once, not counting busy ones.
    static let limit = 1024

    private let accounts: OriginTable<RetryAccount>
    private let random: SharedRandom

    /// A governor without any history.
    ///
    /// - Parameters:
    ///   - rules: the rules; `RetryRules.validate()` must accept them.
    ///   - connectivity: says whether the machine is online, for `rules.waitsForConnectivity`.
    ///   - generator: the source of random delays after gates and for parked retries; seeded in tests.
    public init(
        _ rules: RetryRules = .default,
        connectivity: (any Connectivity)? = nil,
        generator: sending any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        do throws(RetryRulesError) {
            try rules.validate()
        } catch {
            // A mistake in the program, not in its input: it would run with a budget or waits that nobody meant. A release build
            // drops the text of preconditionFailure.
            stopProgram("RetryRules.\(error)")
        }
        let inForce = RulesInForce(rules)
        self.inForce = inForce
        self.connectivity = connectivity
        let random = SharedRandom(generator)
        self.random = random
        accounts = OriginTable(capacity: RetryGovernor.limit, isIdle: { !$0.isBusy(now: $1) }) { now in
            RetryAccount(inForce, random: random, now: now)
        }
    }

    /// The status of a URL's origin; nil if it was never called.
    ///
    /// - Parameters:
    ///   - url: any URL of the origin: scheme, host and port count.
    ///   - now: the time of the clock of the pipelines that use this governor.
    public func status(of url: URL, now: MonotonicInstant) -> RetryStatus? {
        accounts.existingCell(of: OriginText(url.absoluteString))?.status(now: now)
    }

    /// The state that calls to the request's origin share.
    func account(for request: URLRequest, now: MonotonicInstant) -> RetryAccount {
        accounts.cell(of: OriginText(request), now: now)
    }

    /// The governor's source of randomness, which all its users share.
    var generator: SharedRandom.Generator { random.generator }

    /// A sample from 0 up to but not including 1.
    func sample() -> Double {
        var generator = generator
        return Double.random(in: 0..<1, using: &generator)
    }
}

/// One source of randomness for several users.
package final class SharedRandom: Sendable {
    private let random: Mutex<any RandomNumberGenerator & Sendable>

    package init(_ generator: sending any RandomNumberGenerator & Sendable) { random = Mutex(generator) }

    package var generator: Generator { Generator(random: self) }

    package struct Generator: RandomNumberGenerator {
        fileprivate let random: SharedRandom

        package func next() -> UInt64 {
            random.random.withLock { $0.next() }
        }
    }
}

/// Rules in one place: a call uses a few of them and should not have to copy them all.
final class RulesInForce: Sendable {
    let rules: RetryRules

    init(_ rules: RetryRules) { self.rules = rules }
}

/// The status of the retries to one origin, for dashboards and tests.
public struct RetryStatus: Sendable, Hashable {
    /// How many retries the budget would permit now; `Int.max` without a budget.
    public let balance: Int
    /// When the last closed gate of the origin opens, by the pipeline's clock; nil if all are open.
    public let gateOpens: MonotonicInstant?
    /// How many calls wait at a closed gate or for the budget.
    public let waiting: Int
    /// The attempts per second that adaptive pacing allows; nil if nothing was throttled, or pacing is off.
    public let learnedRate: Double?
    /// What has been counted since the origin was first called.
    public let counts: RetryCounts
}

/// What a governor counts for an origin.
public struct RetryCounts: Sendable, Hashable {
    /// Calls whose first attempt has ended: each once, however many attempts it makes; each hop of a redirect chain counts.
    public internal(set) var calls = 0
    /// Attempts that failed.
    public internal(set) var failedAttempts = 0
    /// Retries and hedges that the budget permitted, each counted when it ends; not those that were not sent after all, or that
    /// were cancelled.
    public internal(set) var retries = 0
    /// How many of ``retries`` were hedges.
    public internal(set) var hedges = 0
    /// Why failed calls made no further attempt, by reason.
    public internal(set) var stops: [StopReason: Int] = [:]

    mutating func note(_ cause: RetryCause) {
        retries += 1
        if cause == .hedge { hedges += 1 }
    }

    mutating func note(_ reason: StopReason) {
        // Reasons of custom retriers can be anything, so their number is limited.
        guard stops[reason] != nil || stops.count < 64 else { return }
        stops[reason, default: 0] += 1
    }
}

/// Which retry rules apply to a call of a pipeline, and who makes its retrier: one answer for everyone who asks.
///
/// The call's own rules come first, then its own factory, then the pipeline's. A gateway stays one whatever a call says.
struct Governance: Sendable {
    /// The pipeline's factory.
    private let factory: any RetrierFactory
    /// Its governor, which also governs calls whose own factory has none.
    let own: RetryGovernor?
    /// Governs calls with their own rules if the pipeline has no governor.
    private let fallback: RetryGovernor

    init(_ factory: any RetrierFactory) {
        self.factory = factory
        own = factory.governor
        fallback = own ?? RetryGovernor()
    }

    /// The factory of the call's retrier.
    func factory(for options: CallOptions) -> any RetrierFactory { options.retrierFactory ?? factory }

    /// What the call shares with others; nil if nothing is governed.
    func governor(for options: CallOptions) -> RetryGovernor? {
        if options.areDefault { return own }
        return options.retrierFactory?.governor ?? own ?? (options.rulesInForce == nil ? nil : fallback)
    }

    /// The rules of the call; nil if neither it nor a factory has any.
    func rules(for options: CallOptions) -> RulesInForce? {
        guard !options.areDefault else { return own?.inForce }
        guard let inForce = options.rulesInForce ?? options.retrierFactory?.governor?.inForce else {
            return own?.inForce
        }
        guard own?.rules.isGateway == true, !inForce.rules.isGateway else { return inForce }
        var rules = inForce.rules
        rules.isGateway = true
        return RulesInForce(rules)
    }

    /// The retrier of a call that failed.
    func makeRetrier(for request: URLRequest, _ options: CallOptions) -> any Retrier {
        let factory = factory(for: options)
        guard options.rulesInForce != nil, let rules = rules(for: options)?.rules else {
            return factory.create(for: request)
        }
        if rules.maxAttempts <= 1 { return NilRetrier() }
        return (factory as? any RuledRetrierFactory)?.create(for: request, rules: rules)
            ?? BackoffRetrier(strategy: .exponential(rules))
    }
}

/// A factory whose retriers use rules, which a call can replace without losing the rest of it.
protocol RuledRetrierFactory: RetrierFactory {
    /// A retrier with other rules; nil if none of its parts uses rules.
    func create(for request: URLRequest, rules: RetryRules) -> (any Retrier)?
}

/// Says whether the machine is online: the port to a network monitor.
///
/// **Choose.** `ManualConnectivity` of HoldfastTesting in tests; in programs, one that wraps the platform's monitor, such as
/// `NWPathMonitor` on Apple systems. **Use.** Through ``RetryGovernor/init(_:connectivity:generator:)`` together with
/// `RetryRules.waitsForConnectivity`. **Implement.** Both members are called from many tasks at once;
/// ``waitUntilOnline()`` returns at once while online and throws `CancellationError` promptly when its task is cancelled.
public protocol Connectivity: Sendable {
    /// Whether the machine is online, as far as known.
    var isOnline: Bool { get }

    /// Waits until the machine is online.
    func waitUntilOnline() async throws
}
