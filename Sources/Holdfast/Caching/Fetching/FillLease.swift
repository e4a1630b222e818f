// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One fill for all processes that share a store: which of them sends.
extension CachingHook {
    /// Who sends.
    enum LeaseDecision: Sendable {
        /// This exchange does, with a lease or without one.
        case goAhead(HeldFillLease?)
        /// Another process does, or has done.
        case elsewhere(LeaseOutcome?)
    }

    /// Whether other processes may be fetching the same, so that it is worth asking.
    func mayLease(_ fetchRequest: FetchRequest, context: CallContext) -> Bool {
        cache.leasing != nil && !cache.unleased.contains(fetchRequest.lookup.key, now: context.clock.now)
    }

    /// Decides who sends; waits for another process no longer than the options and the readers' deadlines allow.
    ///
    /// - Returns: the lease to send with, if there is one; or where to look instead.
    /// - Throws: `CancellationError` if nobody waits any more.
    func leaseDecision(
        of fetch: Fetch,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async throws -> (leaseDecision: LeaseDecision, wasAwaited: Bool) {
        guard let leasing = cache.leasing else { return (.goAhead(nil), false) }
        let begun = context.clock.now
        let end = begun.advanced(by: longestWait(of: fetch, at: begun))
        let wait = FillLeaseWait(leasing, mayYield: fetch.mayYield)
        do {
            let leaseDecision = try await withDeadline(end, on: context.clock, discard: CachingHook.giveBack) {
                await settle(wait, fetch: fetch, fetchRequest: fetchRequest, context: context)
            }
            if case .goAhead(let fillLease?) = leaseDecision, Task.isCancelled { fillLease.end(.failed) }
            try Task.checkCancellation()
            report(leaseDecision, wait: wait, since: begun, fetchRequest: fetchRequest, context: context)
            return (leaseDecision, wait.hasWaited)
        } catch {
            if error.isCancellation { throw error }
            let leaseDecision: LeaseDecision = wait.mayYield && wait.hasWaited ? .elsewhere(nil) : .goAhead(nil)
            report(leaseDecision, wait: wait, since: begun, fetchRequest: fetchRequest, context: context)
            return (leaseDecision, wait.hasWaited)
        }
    }

    /// A call with little time reserves half of it for an exchange of its own.
    private func longestWait(of fetch: Fetch, at now: MonotonicInstant) -> Duration {
        let longest = cache.options.longestFillWait
        guard let deadline = fetch.deadline else { return longest }
        return min(longest, max(.zero, now.duration(to: deadline)) / 2)
    }

    private static func giveBack(_ leaseDecision: LeaseDecision) {
        if case .goAhead(let fillLease?) = leaseDecision { fillLease.end(.failed) }
    }

    private func settle(
        _ wait: FillLeaseWait,
        fetch: Fetch,
        fetchRequest: FetchRequest,
        context: CallContext
    ) async -> LeaseDecision {
        let length = cache.options.fillLease
        let variant = StoreKey(fetch.terms.digest(cache.store.secret))
        while !Task.isCancelled {
            switch await wait.leasing.lease(fetchRequest.lookup.storeKey, variant: variant, for: length) {
            case .unavailable: return .goAhead(nil)
            case .granted(let lease):
                let fillLease = HeldFillLease(lease, for: length, context: context)
                guard wait.mayYield, lease.followsFill, await hasNews(fetchRequest, context: context) else {
                    return .goAhead(fillLease)
                }
                // Filled between the lookup and the lease.
                fillLease.end(.stored)
                return .elsewhere(.stored)
            case .held(let other):
                guard wait.mayYield else { return .goAhead(nil) }
                // If nobody waits, it is enough that some process does it.
                if fetch.isUnattended { return .elsewhere(nil) }
                wait.begin()
                switch await other.end() {
                case nil: return .goAhead(nil)
                case .failed?: continue
                case let outcome?: return .elsewhere(outcome)
                }
            }
        }
        return .goAhead(nil)
    }

    /// Whether anything is stored that was not there at the call's lookup.
    private func hasNews(_ fetchRequest: FetchRequest, context: CallContext) async -> Bool {
        await candidates(for: fetchRequest.lookup, context).map(\.entry) != fetchRequest.entries
    }

    private func report(
        _ leaseDecision: LeaseDecision,
        wait: FillLeaseWait,
        since begun: MonotonicInstant,
        fetchRequest: FetchRequest,
        context: CallContext
    ) {
        let key = fetchRequest.lookup.key
        let now = context.clock.now
        var word = "overtime"
        switch leaseDecision {
        case .elsewhere(let outcome?):
            word = outcome.rawValue
            switch outcome {
            case .notShareable: cache.unshared.note(key, until: now.advanced(by: CachingHook.unsharedTime))
            case .notReusable: noteNotReusable(key, context: context)
            case .stored, .failed: break
            }
        case .goAhead(.some): word = LeaseOutcome.failed.rawValue
        case .goAhead(nil): word = "unavailable"
        case .elsewhere(nil): break
        }
        guard wait.hasWaited else { return }
        context.emit(.fillAwaited) { event in
            event.delay = begun.duration(to: now)
            event.detail = word
        }
    }

    // MARK: The holder

    /// Tells the others the result of the exchange, unless the response is still being stored.
    func conclude(
        _ fillLease: HeldFillLease,
        outcome: ResponseOutcome,
        response: Response,
        fetchRequest: FetchRequest,
        context: CallContext
    ) {
        if let loaded = outcome.loaded {
            fillLease.end(
                isReusable(loaded.stored, lookup: fetchRequest.lookup, context: context) ? .stored : .notReusable
            )
        } else if !outcome.isShareable {
            fillLease.end(CachingHook.isFailure(response, outcome: outcome) ? .failed : .notShareable)
        } else if outcome.notStored != nil {
            fillLease.end(.notReusable)
        }
    }

    /// Ends the exchange, including its body.
    func end(_ fillLease: HeldFillLease, fetchRequest: FetchRequest, context: CallContext) {
        fillLease.endExchange()
        if fillLease.outcome == .notReusable { noteNotReusable(fetchRequest.lookup.key, context: context) }
    }

    /// Whether the next call like this one will be answered from the store.
    func isReusable(_ stored: StoredResponse, lookup: CacheLookup, context: CallContext) -> Bool {
        switch decision(on: stored, lookup: lookup, context: context) {
        case .reuse, .reuseWhileRevalidating: true
        default: false
        }
    }

    private func noteNotReusable(_ key: CacheKey, context: CallContext) {
        cache.unleased.note(key, until: context.clock.now.advanced(by: CachingHook.unsharedTime))
    }

    // MARK: Waiting calls

    /// A stored response that another exchange, or another process, confirmed or stored while the call waited for it: not a hit,
    /// since it waited for the origin.
    ///
    /// - Parameter leader: the call whose exchange it was; nil: of another process.
    func answerCollapsed(
        _ loaded: LoadedResponse,
        to lookup: CacheLookup,
        request: URLRequest,
        reason: CacheReason,
        leader: CallID? = nil,
        context: CallContext
    ) -> Response {
        var response = answer(
            loaded,
            to: lookup,
            request: request,
            source: .collapsed,
            context: context,
            counted: .collapsed
        )
        let decision = decision(.collapsed, reason: reason, loaded: loaded, context: context)
        response.cacheDecision = decision
        lookup.metrics.count(decision) { $0.collapsed += 1 }
        record(loaded)
        explain(decision, context: context, leader: leader)
        return response
    }
}

/// An exchange's single wait for the other processes that share the store.
final class FillLeaseWait: Sendable {
    let leasing: any FillLeasing
    /// Whether the exchange may be left to another process.
    let mayYield: Bool
    private let begun = Atomic(false)

    init(_ leasing: any FillLeasing, mayYield: Bool) {
        self.leasing = leasing
        self.mayYield = mayYield
    }

    /// Whether another process was waited for.
    var hasWaited: Bool { begun.load(ordering: .acquiring) }

    func begin() {
        begun.store(true, ordering: .releasing)
    }
}

/// The lease of an exchange: held while the response arrives and is stored, and ended with the result.
///
/// It is part of the context of its exchange; releasing it without a result counts as a failure.
final class HeldFillLease: Sendable {
    private struct State {
        var outcome: LeaseOutcome?
        /// The outcome when storing has ended.
        var whenStored = LeaseOutcome.stored
        /// Whether a caller must still decide whether the response is stored.
        var awaitsVerdict = false
        var renewal: Task<Void, Never>?
    }

    /// A live process holds a lease no longer than this.
    private static let longest = Duration.seconds(60)

    private let lease: any FillLease
    private let state = Mutex(State())

    /// - Parameter length: for how long the lease was granted.
    init(_ lease: any FillLease, for length: Duration, context: CallContext) {
        self.lease = lease
        let clock = context.clock
        let end = clock.now.advanced(by: HeldFillLease.longest)
        let renewal = context.background.start {
            while clock.now < end {
                do {
                    try await clock.sleep(until: clock.now.advanced(by: length / 3))
                } catch {
                    return
                }
                guard await lease.renew(for: length) else { return }
            }
        }
        state.withLock { $0.renewal = renewal }
    }

    deinit { end(.failed) }

    /// The outcome of the fill, once there is one.
    var outcome: LeaseOutcome? { state.withLock { $0.outcome } }

    /// Records whether the response, once stored, can be used without asking the origin.
    func note(isReusable: Bool) {
        state.withLock { $0.whenStored = isReusable ? .stored : .notReusable }
    }

    /// Leaves the ending to a caller who must still accept the response.
    func awaitVerdict() {
        state.withLock { $0.awaitsVerdict = true }
    }

    /// Records that the response is stored.
    func endStored() {
        end(state.withLock { $0.whenStored })
    }

    /// Records that the exchange is over: what is not stored by now will not be, unless a caller's verdict is awaited.
    func endExchange() {
        if !state.withLock({ $0.awaitsVerdict }) { end(.failed) }
    }

    /// Ends the lease, unless it has already ended.
    func end(_ outcome: LeaseOutcome) {
        let (isFirst, renewal): (Bool, Task<Void, Never>?) = state.withLock { state in
            guard state.outcome == nil else { return (false, nil) }
            state.outcome = outcome
            defer { state.renewal = nil }
            return (true, state.renewal)
        }
        guard isFirst else { return }
        renewal?.cancel()
        lease.end(outcome)
    }
}
