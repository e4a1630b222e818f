// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// The state that the calls to one origin share: budgets, gates, the learned rate, and how many wait.
final class RetryAccount: Sendable {
    /// Who a retry is made for: each kind has a budget of its own, so that work nobody waits for cannot starve callers.
    enum Traffic: Sendable {
        case caller
        case background
    }

    private struct State {
        var callers: RetryBudgetState
        var background: RetryBudgetState
        var gates = RetryGates()
        var pacing: AdaptivePacing
        var waiting = 0
        var counts = RetryCounts()
    }

    private let inForce: RulesInForce
    private let state: Mutex<State>
    private let isHeldBack = Atomic(false)

    init(_ inForce: RulesInForce, now: MonotonicInstant) {
        self.inForce = inForce
        let rules = inForce.rules
        state = Mutex(
            State(
                callers: RetryBudgetState(rules.budget, now: now.sinceOrigin),
                background: RetryBudgetState(rules.budget, now: now.sinceOrigin),
                pacing: AdaptivePacing(now: now.sinceOrigin)
            )
        )
    }

    /// Takes note of a fresh call.
    func callBegan(_ traffic: Traffic = .caller, now: MonotonicInstant) {
        state.withLock { state in
            state.counts.calls += 1
            switch traffic {
            case .caller: state.callers.callBegan(now: now.sinceOrigin)
            case .background: state.background.callBegan(now: now.sinceOrigin)
            }
        }
    }

    /// Takes what a retry or a hedge costs; nil where the budget is spent.
    func permit(
        _ cause: RetryBudgetState.Cause,
        _ traffic: Traffic = .caller,
        now: MonotonicInstant
    ) -> RetryGrant? {
        state.withLock { state in
            let grant =
                switch traffic {
                case .caller: state.callers.permit(cause, now: now.sinceOrigin)
                case .background: state.background.permit(cause, now: now.sinceOrigin)
                }
            if grant != nil { state.counts.note(cause) }
            return grant
        }
    }

    /// Takes note of an attempt's end; `grant` is nil for a first attempt.
    func attemptEnded(
        _ grant: RetryGrant?,
        succeeded: Bool,
        _ traffic: Traffic = .caller,
        now: MonotonicInstant
    ) {
        state.withLock { state in
            if !succeeded { state.counts.failedAttempts += 1 }
            switch traffic {
            case .caller: state.callers.attemptEnded(grant, succeeded: succeeded, now: now.sinceOrigin)
            case .background: state.background.attemptEnded(grant, succeeded: succeeded, now: now.sinceOrigin)
            }
        }
    }

    /// Gives back what was granted to an attempt that was not made.
    func giveBack(_ grant: RetryGrant, _ traffic: Traffic = .caller, now: MonotonicInstant) {
        state.withLock { state in
            switch traffic {
            case .caller: state.callers.giveBack(grant, now: now.sinceOrigin)
            case .background: state.background.giveBack(grant, now: now.sinceOrigin)
            }
        }
    }

    /// Closes the gate of a credential for as long as the server asked.
    ///
    /// - Returns: whether that changed anything.
    func close(for credential: Int, asked: Duration, now: MonotonicInstant) -> Bool {
        state.withLock { state in
            let before = state.gates
            state.gates.close(for: credential, asked: asked, now: now.sinceOrigin)
            isHeldBack.store(!state.gates.isEmpty, ordering: .relaxed)
            return state.gates != before
        }
    }

    /// Whether a gate may be closed: known without a lock and without the time.
    var mayBeClosed: Bool { isHeldBack.load(ordering: .relaxed) }

    /// The closed gate of a credential; nil, without taking a lock, where nothing is closed.
    func gate(for credential: Int, now: MonotonicInstant) -> RetryGates.Gate? {
        guard isHeldBack.load(ordering: .relaxed) else { return nil }
        return state.withLock { state in
            let gate = state.gates.closed(for: credential, now: now.sinceOrigin)
            if gate == nil, state.gates.lastOpening(now: now.sinceOrigin) == nil { state.gates = RetryGates() }
            isHeldBack.store(!state.gates.isEmpty, ordering: .relaxed)
            return gate
        }
    }

    /// Whether a call may pass a gate that is closed for longer than anybody waits, to see whether the server means it still.
    func admitsProbe(for credential: Int, now: MonotonicInstant) -> Bool {
        state.withLock { state in
            state.gates.admitsProbe(
                for: credential,
                every: max(inForce.rules.maxServerDelay, .seconds(1)),
                now: now.sinceOrigin
            )
        }
    }

    /// Whether the account holds what must not be forgotten.
    func isBusy(now: MonotonicInstant) -> Bool {
        state.withLock { state in
            state.waiting > 0 || state.callers.inFlight > 0 || state.background.inFlight > 0
                || state.gates.lastOpening(now: now.sinceOrigin) != nil
        }
    }

    /// Whether any gate of the origin is closed now.
    func isClosed(now: MonotonicInstant) -> Bool {
        guard isHeldBack.load(ordering: .relaxed) else { return false }
        return state.withLock { $0.gates.lastOpening(now: now.sinceOrigin) != nil }
    }

    /// How long to wait for the learned rate before asking again; nil: go, the attempt is counted.
    func pace(now: MonotonicInstant) -> Duration? {
        guard inForce.rules.pacesAdaptively else { return nil }
        let wait = state.withLock { $0.pacing.acquire(now: now.sinceOrigin) }
        return wait > .zero ? wait : nil
    }

    /// Tells the learned rate how the server took an attempt.
    func paceAnswered(isThrottled: Bool, now: MonotonicInstant) {
        guard inForce.rules.pacesAdaptively else { return }
        state.withLock { state in
            if isThrottled {
                state.pacing.throttled(now: now.sinceOrigin)
            } else {
                state.pacing.succeeded(now: now.sinceOrigin)
            }
        }
    }

    /// Takes a place among those that wait; false where too many do. A place that was taken must be left.
    func beginsWaiting() -> Bool {
        state.withLock { state in
            guard state.waiting < inForce.rules.maxWaiting else { return false }
            state.waiting += 1
            return true
        }
    }

    func endsWaiting() {
        state.withLock { $0.waiting -= 1 }
    }

    /// Takes note of why a call made no further attempt.
    func stopped(_ reason: StopReason) {
        state.withLock { $0.counts.note(reason) }
    }

    /// What an observer sees.
    func status(now: MonotonicInstant) -> RetryStatus {
        state.withLock { state in
            RetryStatus(
                balance: state.callers.balance(now: now.sinceOrigin),
                gateOpens: state.gates.lastOpening(now: now.sinceOrigin).map { MonotonicInstant(sinceOrigin: $0) },
                waiting: state.waiting,
                learnedRate: state.pacing.rate,
                counts: state.counts
            )
        }
    }
}
