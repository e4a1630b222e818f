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

    /// Waits until the gate of the call's partition is open.
    ///
    /// - Throws: ``ServiceError`` `.throttled` at once where it opens too late for this call, or too many wait already.
    func waitAtGate(_ course: inout AttemptCourse, _ context: CallContext) async throws {
        guard let account = course.account, account.mayBeClosed, let governor = course.governor,
            let rules = course.rules
        else { return }
        while rules.closesGate, let gate = account.gate(for: course.credential, now: context.clock.now) {
            let opens = MonotonicInstant(sinceOrigin: gate.opens)
            let wait = context.clock.now.duration(to: opens)
            if wait > rules.maxServerDelay, account.admitsProbe(for: course.credential, now: context.clock.now) {
                return
            }
            let end = opens.advanced(by: gate.spread * governor.sample())
            guard wait <= rules.maxServerDelay, mayBeHeldBack(until: end, &course, rules, context),
                account.beginsWaiting()
            else { throw closed(for: wait) }
            defer { account.endsWaiting() }
            context.emit(.gateAwaited) { $0.delay = context.clock.now.duration(to: end) }
            try await rest(until: end, context)
        }
    }

    /// Whether the call may wait until `end` before its attempt: within its deadline, and, after a first wait, for no longer
    /// than a parked retry would, so that a gate that closes again and again does not hold it for ever.
    private func mayBeHeldBack(
        until end: MonotonicInstant,
        _ course: inout AttemptCourse,
        _ rules: RetryRules,
        _ context: CallContext
    ) -> Bool {
        let wait = context.clock.now.duration(to: end)
        guard mayWait(until: end, rules, context) else { return false }
        guard course.heldBack == .zero || course.heldBack + wait <= rules.maxParking else { return false }
        course.heldBack += wait
        return true
    }

    /// Waits for the learned rate, where the rules learn one and the server has throttled.
    ///
    /// - Throws: ``ServiceError`` `.throttled` at once where the call's turn comes too late, or too many wait already.
    func waitForPace(_ course: inout AttemptCourse, _ context: CallContext) async throws {
        guard course.inForce?.rules.pacesAdaptively == true, let account = course.account, let rules = course.rules
        else { return }
        while let wait = account.pace(now: context.clock.now) {
            let end = context.clock.now.advanced(by: wait)
            guard wait <= rules.maxServerDelay, mayBeHeldBack(until: end, &course, rules, context),
                account.beginsWaiting()
            else { throw closed(for: wait) }
            defer { account.endsWaiting() }
            context.emit(.paceAwaited) { $0.delay = wait }
            try await rest(until: end, context)
        }
    }

    /// Why a retry must not follow after all; nil where it may, and then the budget has been charged for it.
    func refusal(
        of failed: FailedAttempt,
        after delay: Duration,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) async throws -> StopReason? {
        // The retrier may have taken its time.
        let timeLeft = context.deadline.map { context.clock.now.duration(to: $0) }
        guard (course.rules ?? .default).fits(delay, timeLeft) else { return .deadline }
        guard let account = course.account, let rules = course.rules else { return nil }
        if rules.closesGate, let gate = account.gate(for: course.credential, now: context.clock.now) {
            let wait = gate.opens - context.clock.now.sinceOrigin
            if wait > rules.maxServerDelay { return .serverDelayTooLong }
            if !rules.fits(wait + gate.spread, timeLeft) { return .gateClosed }
        }
        guard let cause = course.cause(of: failed.exchange, rules) else { return nil }
        return try await permit(cause, delay, account, rules, &course, context)
    }

    private func permit(
        _ cause: RetryBudgetState.Cause,
        _ delay: Duration,
        _ account: RetryAccount,
        _ rules: RetryRules,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) async throws -> StopReason? {
        let start = context.clock.now
        var waits = false
        defer { if waits { account.endsWaiting() } }
        while true {
            course.traffic = context.isBackground ? .background : .caller
            if let grant = account.permit(cause, course.traffic, now: context.clock.now) {
                course.grant = grant
                // The wait for a token may have used up the time that the backoff needs.
                let end = context.clock.now.advanced(by: delay)
                return mayWait(until: end, rules, context) ? nil : .deadline
            }
            guard rules.parks, let governor = course.governor else { return .budget }
            let end = context.clock.now.advanced(by: .milliseconds(50) + .milliseconds(100) * governor.sample())
            guard start.duration(to: end) <= rules.maxParking, mayWait(until: end, rules, context) else {
                return .budget
            }
            if !waits {
                guard account.beginsWaiting() else { return .budget }
                waits = true
                context.emit(.budgetAwaited) { $0.attempt = context.attempt }
            }
            try await rest(until: end, context)
        }
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
