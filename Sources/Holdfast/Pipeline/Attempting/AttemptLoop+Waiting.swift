// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// The waits of the attempt loop: all of them on the pipeline's clock, none that cannot end in an attempt.
extension AttemptLoop {
    /// Waits until `instant`, and lets those who wait for the exchange know that it rests.
    func rest(until instant: MonotonicInstant, _ context: CallContext) async throws {
        context.flight?.rests(until: instant)
        try await context.clock.sleep(until: instant)
        context.flight?.rests(until: nil)
    }

    /// Waits until the attempt to come may be sent: for the gates, the learned rate and the budget.
    ///
    /// - Throws: ``ServiceError`` `.throttled` where a gate opens, or the learned rate allows it, too late for this call;
    ///   ``RefusedRetry`` where the budget refuses it.
    func waitForTurn(_ course: inout AttemptCourse, _ context: CallContext) async throws {
        while true {
            try await waitAtGate(&course, context)
            try await waitForPace(&course, context)
            guard let cause = course.pending else { return }
            try await waitForBudget(cause, &course, context)
            // Nobody else is kept from a retry by one that waits at a gate.
            guard !course.isProbe, closedGate(course, context) != nil else { return }
            course.giveBack(now: context.clock.now)
            course.pending = cause
        }
    }

    private func waitForBudget(_ cause: RetryCause, _ course: inout AttemptCourse, _ context: CallContext) async throws
    {
        course.pending = nil
        course.chooseBudget(context)
        guard let account = course.account, let rules = course.rules else { return }
        var waits = false
        let grant = try await account.permission(
            cause,
            rules: rules,
            traffic: course.traffic,
            deadline: context.deadline,
            context: context
        ) { until in
            context.flight?.rests(until: until)
            guard !waits else { return }
            waits = true
            context.emit(.budgetAwaited) { $0.attempt = context.attempt }
        }
        guard let grant else { throw RefusedRetry(reason: .budget) }
        course.grant = grant
    }

    /// The gate that is closed for a call; asking counts as no probe.
    private func closedGate(_ course: AttemptCourse, _ context: CallContext) -> RetryGates.Gate? {
        guard let account = course.account, account.mayBeClosed, course.inForce?.rules.closesGate == true,
            case .closed(let gate) = account.check(course.place, admitsProbe: false, now: context.clock.now)
        else { return nil }
        return gate
    }

    /// Waits until the gates that stand before the call are open, or it may pass as a probe.
    private func waitAtGate(_ course: inout AttemptCourse, _ context: CallContext) async throws {
        course.isProbe = false
        guard let account = course.account, account.mayBeClosed, let governor = course.governor,
            let rules = course.rules, rules.closesGate
        else { return }
        while true {
            let now = context.clock.now
            let gate: RetryGates.Gate
            switch account.check(course.place, admitsProbe: true, now: now) {
            case .open: return
            case .probe:
                course.isProbe = true
                return
            case .closed(let closed): gate = closed
            }
            let opens = MonotonicInstant(sinceOrigin: gate.opens)
            let wait = now.duration(to: opens)
            var end = opens.advanced(by: gate.spread * governor.sample())
            if wait > rules.maxServerDelay || !mayBeHeldBack(until: end, course, rules, context) {
                // The first probe may find the gate open.
                guard let held = gate.holdsUntil.map(MonotonicInstant.init(sinceOrigin:)),
                    mayBeHeldBack(until: held, course, rules, context)
                else { throw closed(for: wait) }
                end = held
            }
            guard account.beginsWaiting() else { throw closed(for: wait) }
            defer { account.endsWaiting() }
            context.emit(.gateAwaited) { $0.delay = now.duration(to: end) }
            context.flight?.rests(until: end)
            try await account.rest(at: gate, until: end, context)
            context.flight?.rests(until: nil)
            // By a clock that does not move, as tests have, the wait was as long as it should have been.
            let waited = now.duration(to: context.clock.now)
            course.heldBack += waited > .zero ? waited : now.duration(to: end)
        }
    }

    /// Whether the call may wait until `end` before its attempt: within its deadline, and, after a first wait, for no longer
    /// than a parked retry would, so that a gate that closes again and again does not hold it for ever.
    private func mayBeHeldBack(
        until end: MonotonicInstant,
        _ course: AttemptCourse,
        _ rules: RetryRules,
        _ context: CallContext
    ) -> Bool {
        let wait = context.clock.now.duration(to: end)
        guard mayWait(until: end, rules, context) else { return false }
        return course.heldBack == .zero || course.heldBack + wait <= rules.maxParking
    }

    /// Waits for the learned rate, where the rules learn one and the server has throttled.
    ///
    /// - Throws: ``ServiceError`` `.throttled` at once where the call's turn comes too late, or too many wait already.
    private func waitForPace(_ course: inout AttemptCourse, _ context: CallContext) async throws {
        guard course.inForce?.rules.pacesAdaptively == true, let account = course.account, let rules = course.rules
        else { return }
        while let wait = account.pace(now: context.clock.now) {
            let end = context.clock.now.advanced(by: wait)
            guard wait <= rules.maxServerDelay, mayBeHeldBack(until: end, course, rules, context),
                account.beginsWaiting()
            else { throw closed(for: wait) }
            defer { account.endsWaiting() }
            course.heldBack += wait
            context.emit(.paceAwaited) { $0.delay = wait }
            try await rest(until: end, context)
        }
    }

    /// Why a retry must not follow after all; nil where it may, and then it may yet be refused when it is due.
    func refusal(
        of failed: FailedAttempt,
        after delay: Duration,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) -> StopReason? {
        // The retrier may have taken its time.
        let now = context.clock.now
        let timeLeft = context.deadline.map { now.duration(to: $0) }
        guard (course.rules ?? .default).fits(delay, timeLeft) else { return .deadline }
        guard let account = course.account, let rules = course.rules else { return nil }
        if let gate = closedGate(course, context), gate.holdsUntil == nil {
            let wait = gate.opens - now.sinceOrigin
            if wait > rules.maxServerDelay { return .serverDelayTooLong }
            if !rules.fits(wait + gate.spread, timeLeft) { return .gateClosed }
        }
        guard let cause = course.cause(of: failed.exchange, rules) else { return nil }
        course.chooseBudget(context)
        switch account.plan(cause, after: delay, rules: rules, traffic: course.traffic, now: now) {
        case .granted(let grant): course.grant = grant
        case .asks: course.pending = cause
        case .refused: return .budget
        }
        return nil
    }

    /// Waits for the network where the machine is offline and the rules say so; such an attempt does not count.
    ///
    /// - Returns: whether to try again now.
    func waitedForNetwork(
        after failed: FailedAttempt,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) async throws -> Bool {
        guard let rules = course.rules, rules.waitsForConnectivity, let governor = course.governor,
            let connectivity = governor.connectivity, failed.bodyIsReplayable,
            case .failure(let failure) = failed.outcome, failure.progress == .notSent,
            failure.kind == .offline || failure.kind == .resolve || failure.kind == .connect, !connectivity.isOnline
        else { return false }
        // Nobody would learn of what the background waits for, and its places are few.
        guard !context.isBackground, let account = course.account, account.beginsWaiting()
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
        // All who waited learn of it at the same moment; they must not all send at the same moment.
        let spread = Duration.seconds(1) * governor.sample()
        let end = context.clock.now.advanced(by: spread)
        guard mayWait(until: end, rules, context) else { return false }
        try await rest(until: end, context)
        resend("online", after: start.duration(to: end), &course, context)
        return true
    }

    private func mayWait(until end: MonotonicInstant, _ rules: RetryRules, _ context: CallContext) -> Bool {
        let now = context.clock.now
        return rules.fits(now.duration(to: end), context.deadline.map { now.duration(to: $0) })
    }

    private func closed(for wait: Duration) -> ServiceError {
        var error = ServiceError(
            .throttled,
            "The server is to be left alone for another \(wait), longer than this call may wait; send it again after that, "
                + "or allow more time.",
            progress: .notSent
        )
        error.retryAfter = wait
        return error
    }
}

/// Why an attempt that was to be made is not.
struct RefusedRetry: Error {
    let reason: StopReason
}
