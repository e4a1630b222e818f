// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One fill for a fleet: which one of the processes that share a store sends.
extension CachingHook {
    /// Who sends.
    enum Clearance: Sendable {
        /// This exchange does, with a lease or without one.
        case goAhead(Filling?)
        /// Another process does, or has done.
        case elsewhere(LeaseOutcome?)
    }

    /// Whether other processes may be at it, so that it is worth asking.
    func mayLease(_ need: Need, _ context: CallContext) -> Bool {
        cache.leasing != nil && !cache.unleased.contains(need.lookup.key, now: context.clock.now)
    }

    /// Settles who sends; waits for another process no longer than the options and the deadlines of the readers allow.
    ///
    /// - Returns: the lease to send with, if there is one; or where to look instead.
    /// - Throws: `CancellationError` where nobody waits any more.
    func clearance(
        of flight: Flight,
        _ need: Need,
        _ context: CallContext
    ) async throws -> (clearance: Clearance, wasAwaited: Bool) {
        guard let leasing = cache.leasing else { return (.goAhead(nil), false) }
        let begun = context.clock.now
        let end = begun.advanced(by: longestWait(of: flight, at: begun))
        let wait = FillWait(leasing, mayYield: flight.mayYield)
        do {
            let clearance = try await withDeadline(end, on: context.clock, discard: CachingHook.giveBack) {
                await settle(wait, flight, need, context)
            }
            if case .goAhead(let filling?) = clearance, Task.isCancelled { filling.end(.failed) }
            try Task.checkCancellation()
            report(clearance, wait, since: begun, need, context)
            return (clearance, wait.hasWaited)
        } catch {
            if error.isCancellation { throw error }
            let clearance: Clearance = wait.mayYield && wait.hasWaited ? .elsewhere(nil) : .goAhead(nil)
            report(clearance, wait, since: begun, need, context)
            return (clearance, wait.hasWaited)
        }
    }

    /// A call with little time keeps half of it for an exchange of its own.
    private func longestWait(of flight: Flight, at now: MonotonicInstant) -> Duration {
        let longest = cache.options.longestFillWait
        guard let deadline = flight.deadline else { return longest }
        return min(longest, max(.zero, now.duration(to: deadline)) / 2)
    }

    private static func giveBack(_ clearance: Clearance) {
        if case .goAhead(let filling?) = clearance { filling.end(.failed) }
    }

    private func settle(
        _ wait: FillWait,
        _ flight: Flight,
        _ need: Need,
        _ context: CallContext
    ) async -> Clearance {
        let length = cache.options.fillLease
        let variant = StoreKey(flight.terms.digest(cache.store.secret))
        while !Task.isCancelled {
            switch await wait.leasing.lease(need.lookup.storeKey, variant: variant, for: length) {
            case .unavailable: return .goAhead(nil)
            case .granted(let lease):
                let filling = Filling(lease, for: length, context)
                guard wait.mayYield, lease.followsFill, await hasNews(need, context) else { return .goAhead(filling) }
                // Filled between the look-up and the lease.
                filling.end(.stored)
                return .elsewhere(.stored)
            case .held(let other):
                guard wait.mayYield else { return .goAhead(nil) }
                // Where nobody waits it is enough that somebody does it.
                if flight.isUnattended { return .elsewhere(nil) }
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

    /// Whether anything else is stored than was when the call was looked up.
    private func hasNews(_ need: Need, _ context: CallContext) async -> Bool {
        await candidates(for: need.lookup, context).map(\.entry) != need.entries
    }

    private func report(
        _ clearance: Clearance,
        _ wait: FillWait,
        since begun: MonotonicInstant,
        _ need: Need,
        _ context: CallContext
    ) {
        let key = need.lookup.key
        let now = context.clock.now
        var word = "overtime"
        switch clearance {
        case .elsewhere(let outcome?):
            word = outcome.rawValue
            switch outcome {
            case .notShareable: cache.unshared.note(key, until: now.advanced(by: CachingHook.unsharedTime))
            case .notReusable: noteNotReusable(key, context)
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

    /// Tells the others what came of the exchange, unless the response is still being stored.
    func conclude(_ filling: Filling, _ outcome: HopOutcome, _ response: Response, _ need: Need, _ context: CallContext)
    {
        if let held = outcome.held {
            filling.end(isReusable(held.stored, need.lookup, context) ? .stored : .notReusable)
        } else if !outcome.isShareable {
            filling.end(CachingHook.isFailure(response, outcome) ? .failed : .notShareable)
        } else if outcome.notStored != nil {
            filling.end(.notReusable)
        }
    }

    /// The exchange is over, its body included.
    func end(_ filling: Filling, _ need: Need, _ context: CallContext) {
        filling.endExchange()
        if filling.outcome == .notReusable { noteNotReusable(need.lookup.key, context) }
    }

    /// Whether the next call like this one will be answered from the store.
    func isReusable(_ stored: StoredResponse, _ lookup: CacheLookup, _ context: CallContext) -> Bool {
        switch decision(on: stored, lookup, context) {
        case .reuse, .reuseWhileRevalidating: true
        default: false
        }
    }

    private func noteNotReusable(_ key: CacheKey, _ context: CallContext) {
        cache.unleased.note(key, until: context.clock.now.advanced(by: CachingHook.unsharedTime))
    }

    // MARK: Those who waited

    /// A response that another process has stored while the call waited for it: no hit, since it waited for the origin.
    func answerFilled(
        _ held: HeldResponse,
        to lookup: CacheLookup,
        _ request: URLRequest,
        _ context: CallContext
    ) -> Response {
        var response = answer(held, to: lookup, request, source: .collapsed, context, counted: .collapsed)
        let decision = decision(.collapsed, .filledElsewhere, held, context)
        response.cacheDecision = decision
        lookup.tally.count(decision) { $0.collapsed += 1 }
        record(held)
        explain(decision, context)
        return response
    }
}
