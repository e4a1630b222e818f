// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The waits of the attempt loop: all use the pipeline's clock, and each can end in an attempt.
extension AttemptLoop {
    /// Waits until `instant`, and tells those who wait for the exchange.
    func wait(until instant: MonotonicInstant, _ context: CallContext) async throws {
        context.fetch?.isBackingOff(until: instant)
        try await context.clock.sleep(until: instant)
        context.fetch?.isBackingOff(until: nil)
    }

    /// Waits until the next attempt may be sent: for the gates, the learned rate and the budget.
    ///
    /// - Throws: ``ServiceError`` `.throttled` if a gate opens, or the learned rate allows it, too late for this call;
    ///   ``RefusedRetry`` if the budget refuses it.
    func waitForTurn(_ state: inout AttemptState, context: CallContext) async throws {
        while true {
            try await waitAtGate(&state, context: context)
            try await waitForPace(&state, context: context)
            guard let cause = state.pending else { return }
            try await waitForBudget(cause, state: &state, context: context)
            // A retry that waits at a gate must not keep others from retrying.
            guard !state.isProbe, closedGate(state, context: context) != nil else { return }
            state.giveBack(now: context.clock.now)
            state.pending = cause
        }
    }

    private func waitForBudget(_ cause: RetryCause, state: inout AttemptState, context: CallContext) async throws {
        state.pending = nil
        state.chooseBudget(context)
        guard let account = state.account, let rules = state.rules else { return }
        var waits = false
        let grant = try await account.permission(
            cause,
            rules: rules,
            traffic: state.traffic,
            deadline: context.deadline,
            context: context
        ) { until in
            context.fetch?.isBackingOff(until: until)
            guard !waits else { return }
            waits = true
            context.emit(.budgetAwaited) { $0.attempt = context.attempt }
        }
        guard let grant else { throw RefusedRetry(reason: .budget) }
        state.grant = grant
    }

    /// The gate that is closed for a call; asking does not count as a probe.
    private func closedGate(_ state: AttemptState, context: CallContext) -> RetryGates.Gate? {
        guard let account = state.account, account.mayBeClosed, state.inForce?.rules.closesGate == true,
            case .closed(let gate) = account.check(state.place, admitsProbe: false, now: context.clock.now)
        else { return nil }
        return gate
    }

    /// Waits until the call's gates are open, or it may pass as a probe.
    private func waitAtGate(_ state: inout AttemptState, context: CallContext) async throws {
        state.isProbe = false
        guard let account = state.account, account.mayBeClosed, let governor = state.governor,
            let rules = state.rules, rules.closesGate
        else { return }
        while true {
            let now = context.clock.now
            let gate: RetryGates.Gate
            switch account.check(state.place, admitsProbe: true, now: now) {
            case .open: return
            case .probe:
                state.isProbe = true
                return
            case .closed(let closed): gate = closed
            }
            let opens = MonotonicInstant(sinceOrigin: gate.opens)
            let wait = now.duration(to: opens)
            var end = opens.advanced(by: gate.spread * governor.sample())
            if wait > rules.maxServerDelay || !mayBeHeldBack(until: end, state: state, rules: rules, context: context) {
                // The first probe may find the gate open.
                guard let held = gate.holdsUntil.map(MonotonicInstant.init(sinceOrigin:)),
                    mayBeHeldBack(until: held, state: state, rules: rules, context: context)
                else { throw closed(for: wait) }
                end = held
            }
            guard account.beginsWaiting() else { throw closed(for: wait) }
            defer { account.endsWaiting() }
            context.emit(.gateAwaited) { $0.delay = now.duration(to: end) }
            context.fetch?.isBackingOff(until: end)
            try await account.rest(at: gate, until: end, context)
            context.fetch?.isBackingOff(until: nil)
            // With a clock that does not move, as in tests, the wait counts with its intended length.
            let waited = now.duration(to: context.clock.now)
            state.heldBack += waited > .zero ? waited : now.duration(to: end)
        }
    }

    /// Whether the call may wait until `end` before its attempt: within its deadline and, after a first wait, for no longer than a
    /// parked retry, so that a gate that closes again and again does not hold it forever.
    private func mayBeHeldBack(
        until end: MonotonicInstant,
        state: AttemptState,
        rules: RetryRules,
        context: CallContext
    ) -> Bool {
        let wait = context.clock.now.duration(to: end)
        guard mayWait(until: end, rules: rules, context: context) else { return false }
        return state.heldBack == .zero || state.heldBack + wait <= rules.maxParking
    }

    /// Waits for the learned rate, if the rules use one and the server has throttled.
    ///
    /// - Throws: ``ServiceError`` `.throttled` at once if the call's turn comes too late, or if too many are waiting.
    private func waitForPace(_ state: inout AttemptState, context: CallContext) async throws {
        guard state.inForce?.rules.pacesAdaptively == true, let account = state.account, let rules = state.rules
        else { return }
        while let wait = account.pace(now: context.clock.now) {
            let end = context.clock.now.advanced(by: wait)
            guard wait <= rules.maxServerDelay,
                mayBeHeldBack(until: end, state: state, rules: rules, context: context),
                account.beginsWaiting()
            else { throw closed(for: wait) }
            defer { account.endsWaiting() }
            state.heldBack += wait
            context.emit(.paceAwaited) { $0.delay = wait }
            try await self.wait(until: end, context)
        }
    }

    /// Why a retry must not follow after all; nil if it may, although it may still be refused when it is due.
    func refusal(
        of failed: FailedAttempt,
        after delay: Duration,
        state: inout AttemptState,
        context: CallContext
    ) -> StopReason? {
        // The retrier may have taken some time.
        let now = context.clock.now
        let timeLeft = context.deadline.map { now.duration(to: $0) }
        guard (state.rules ?? .default).fits(delay, within: timeLeft) else { return .deadline }
        guard let account = state.account, let rules = state.rules else { return nil }
        if let gate = closedGate(state, context: context), gate.holdsUntil == nil {
            let wait = gate.opens - now.sinceOrigin
            if wait > rules.maxServerDelay { return .serverDelayTooLong }
            if !rules.fits(wait + gate.spread, within: timeLeft) { return .gateClosed }
        }
        guard let cause = state.cause(of: failed.exchange, rules) else { return nil }
        state.chooseBudget(context)
        switch account.plan(cause, after: delay, rules: rules, traffic: state.traffic, now: now) {
        case .granted(let grant): state.grant = grant
        case .asks: state.pending = cause
        case .refused: return .budget
        }
        return nil
    }

    /// Waits for the network if the machine is offline and the rules say so; such an attempt does not count.
    ///
    /// - Returns: whether to try again now.
    func waitedForNetwork(
        after failed: FailedAttempt,
        state: inout AttemptState,
        context: CallContext
    ) async throws -> Bool {
        guard let rules = state.rules, rules.waitsForConnectivity, let governor = state.governor,
            let connectivity = governor.connectivity, failed.bodyIsReplayable,
            case .failure(let failure) = failed.outcome, failure.progress == .notSent,
            failure.kind == .offline || failure.kind == .resolve || failure.kind == .connect, !connectivity.isOnline
        else { return false }
        // Nobody would notice what waits in the background, and its places are few.
        guard !context.isBackground, let account = state.account, account.beginsWaiting()
        else { return false }
        defer { account.endsWaiting() }
        context.emit(.connectivityAwaited) { $0.attempt = context.attempt }
        let start = context.clock.now
        if let deadline = context.deadline {
            do {
                try await withDeadline(deadline, on: context.clock, discard: { (_: Void) in }) {
                    try await connectivity.waitUntilOnline()
                }
            } catch let error as ServiceError where error.code == .timeout {
                return false
            }
        } else {
            try await connectivity.waitUntilOnline()
        }
        // All waiting calls are resumed at the same moment, but must not all send at the same moment.
        let spread = Duration.seconds(1) * governor.sample()
        let end = context.clock.now.advanced(by: spread)
        guard mayWait(until: end, rules: rules, context: context) else { return false }
        try await self.wait(until: end, context)
        resend("online", after: start.duration(to: end), state: &state, context: context)
        return true
    }

    private func mayWait(until end: MonotonicInstant, rules: RetryRules, context: CallContext) -> Bool {
        let now = context.clock.now
        return rules.fits(now.duration(to: end), within: context.deadline.map { now.duration(to: $0) })
    }

    private func closed(for wait: Duration) -> ServiceError {
        var error = ServiceError(
            .throttled,
            "The server asked for another \(wait) without requests, longer than this call may wait; send it again after that, "
                + "or allow more time.",
            progress: .notSent
        )
        error.retryAfter = wait
        return error
    }
}

/// Why an intended attempt is not made.
struct RefusedRetry: Error {
    let reason: StopReason
}
