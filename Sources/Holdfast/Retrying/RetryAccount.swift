// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The state that the calls to one origin share: budgets, gates, the learned rate, and the calls that wait for any of them.
///
/// The rules are in `RetryBudgetState` and `RetryGates`, under one lock; here, calls sleep and are woken.
final class RetryAccount: Sendable {
    /// Which budget pays: work that nobody waits for has its own, so that it cannot starve callers, and so do calls whose rules
    /// name another budget than the governor's.
    struct Traffic: Sendable {
        fileprivate var index: Int

        static let caller = Traffic(index: 0)
        static let background = Traffic(index: 1)
    }

    /// How an attempt ended.
    struct AttemptEnd {
        /// Its grant; nil for a first attempt and for a resend that is free.
        var grant: RetryGrant?
        /// Whether it was the first of its call.
        var isFirst: Bool
        var succeeded: Bool
        var traffic: Traffic
        /// What it told the gates, and where; nil if nothing.
        var notice: (GateNotice, GatePlace, isProbe: Bool)?
    }

    /// A call that waits; its wait may be shortened.
    private struct Sleeper {
        var until: Duration
        /// The gate that it waits at, if probes may open it.
        var scope: Int?
        var task: Task<Void, Never>?
        /// The budget's answer, once the call was woken.
        var answer: RetryBudgetState.Answer?
    }

    private struct State {
        /// The governor's budgets for callers and for the background, then those of ``ownBudgets``.
        var budgets: [RetryBudgetState]
        var ownBudgets: [RetryBudget] = []
        var gates = RetryGates()
        var pacing: AdaptivePacing
        var waiting = 0
        var counts = RetryCounts()
        var sleepers: [Int: Sleeper] = [:]
        var lastTicket = 0

        mutating func nextTicket() -> Int {
            lastTicket += 1
            return lastTicket
        }

        /// Passes the budget's answers on to the calls that it wakes.
        ///
        /// - Returns: the tasks that they sleep in, to be cancelled once the lock is released.
        mutating func tell(_ calls: [RetryBudgetState.Call]) -> [Task<Void, Never>] {
            calls.compactMap { call in
                guard var sleeper = sleepers[call.ticket] else { return nil }
                if case .wait(let until) = call.answer { sleeper.until = until } else { sleeper.answer = call.answer }
                sleepers[call.ticket] = sleeper
                return sleeper.task
            }
        }

        /// Shortens the waits at gates that were opened, spread over as much time as each gate says.
        mutating func open(
            _ scopes: [Int: Duration],
            now: Duration,
            using generator: inout some RandomNumberGenerator
        ) -> [Task<Void, Never>] {
            guard !scopes.isEmpty else { return [] }
            var tasks: [Task<Void, Never>] = []
            for ticket in sleepers.keys.sorted() {
                guard var sleeper = sleepers[ticket], let spread = sleeper.scope.flatMap({ scopes[$0] }) else {
                    continue
                }
                let until = now + spread * Double.random(in: 0..<1, using: &generator)
                guard until < sleeper.until else { continue }
                sleeper.until = until
                sleepers[ticket] = sleeper
                if let task = sleeper.task { tasks.append(task) }
            }
            return tasks
        }
    }

    private let inForce: RulesInForce
    private let random: SharedRandom
    private let state: Mutex<State>
    private let isHeldBack = Atomic(false)

    init(_ inForce: RulesInForce, random: SharedRandom, now: MonotonicInstant) {
        self.inForce = inForce
        self.random = random
        var generator = random.generator
        let budgets = (0..<2).map { _ in
            RetryBudgetState(inForce.rules.budget, now: now.sinceOrigin, using: &generator)
        }
        state = Mutex(State(budgets: budgets, pacing: AdaptivePacing(now: now.sinceOrigin)))
    }

    // MARK: The budget

    /// The most budgets in addition to the governor's; calls with further ones use the governor's.
    private static let mostOwnBudgets = 8

    /// How many budgets there are, including those of the background.
    var budgetCount: Int { state.withLock { $0.budgets.count } }

    /// Which budget pays for a call whose rules name this one.
    func traffic(under budget: RetryBudget, isBackground: Bool, now: MonotonicInstant) -> Traffic {
        let usual = isBackground ? Traffic.background : .caller
        guard budget != inForce.rules.budget else { return usual }
        var generator = random.generator
        return state.withLock { state in
            if let place = state.ownBudgets.firstIndex(of: budget) {
                return Traffic(index: 2 * place + 2 + usual.index)
            }
            guard state.ownBudgets.count < RetryAccount.mostOwnBudgets else { return usual }
            state.ownBudgets.append(budget)
            for _ in 0..<2 {
                state.budgets.append(RetryBudgetState(budget, now: now.sinceOrigin, using: &generator))
            }
            return Traffic(index: state.budgets.count - 2 + usual.index)
        }
    }

    /// Records an attempt's end: all that a call that succeeds at once needs from the account.
    ///
    /// - Returns: whether it closed a gate.
    func attemptEnded(_ end: AttemptEnd, now: MonotonicInstant) -> Bool {
        var generator = random.generator
        let now = now.sinceOrigin
        let (woken, hasClosed): ([Task<Void, Never>], Bool) = state.withLock { state in
            let traffic = end.traffic.index
            if end.isFirst {
                state.counts.calls += 1
                state.budgets[traffic].callBegan(now: now)
            }
            if !end.succeeded { state.counts.failedAttempts += 1 }
            if let grant = end.grant { state.counts.note(grant.cause) }
            let calls = state.budgets[traffic]
                .attemptEnded(end.grant, succeeded: end.succeeded, now: now, using: &generator)
            var woken = calls.isEmpty ? [] : state.tell(calls)
            guard let (notice, place, isProbe) = end.notice else { return (woken, false) }
            let effect = state.gates.answered(notice, from: place, isProbe: isProbe, now: now)
            isHeldBack.store(!state.gates.isEmpty, ordering: .relaxed)
            woken += state.open(effect.opened, now: now, using: &generator)
            return (woken, effect.hasClosed)
        }
        for task in woken { task.cancel() }
        return hasClosed
    }

    /// Records the end of a hedge or a resume.
    func ended(_ grant: RetryGrant, succeeded: Bool, traffic: Traffic = .caller, now: MonotonicInstant) {
        let end = AttemptEnd(grant: grant, isFirst: false, succeeded: succeeded, traffic: traffic)
        _ = attemptEnded(end, now: now)
    }

    /// Returns the grant of an attempt that was not sent, or whose end says nothing.
    func giveBack(_ grant: RetryGrant, traffic: Traffic = .caller, now: MonotonicInstant) {
        var generator = random.generator
        let woken = state.withLock { state in
            state.tell(state.budgets[traffic.index].giveBack(grant, now: now.sinceOrigin, using: &generator))
        }
        for task in woken { task.cancel() }
    }

    /// Takes what a hedge costs; nil if the budget is used up.
    func permitHedge(now: MonotonicInstant) -> RetryGrant? {
        state.withLock { $0.budgets[Traffic.caller.index].permit(.hedge, now: now.sinceOrigin) }
    }

    /// Asks after a failure for a retry that is due after `delay`.
    func plan(
        _ cause: RetryCause,
        after delay: Duration,
        rules: RetryRules,
        traffic: Traffic,
        now: MonotonicInstant
    ) -> RetryBudgetState.Plan {
        state.withLock { state in
            state.budgets[traffic.index]
                .plan(cause, after: delay, patience: rules.patience, parks: rules.parks, now: now.sinceOrigin)
        }
    }

    /// Waits until a retry that is due may be sent; nil: it may not.
    ///
    /// - Parameters:
    ///   - deadline: when it must have been sent, read again before the retry is refused, because it moves if another call
    ///     joins; nil: only the limit of the rules.
    ///   - isWaiting: called with the time until which it waits, and at the end of the wait.
    /// - Throws: `CancellationError` promptly if the task is cancelled, and nothing else; nothing is granted then.
    func permission(
        _ cause: RetryCause,
        rules: RetryRules,
        traffic: Traffic,
        deadline: @autoclosure () -> MonotonicInstant?,
        context: CallContext,
        isWaiting: (MonotonicInstant?) -> Void
    ) async throws -> RetryGrant? {
        let begun = context.clock.now.sinceOrigin
        var end = deadline()
        let turn = rules.turn(since: begun, now: begun, deadline: end)
        var generator = random.generator
        var (ticket, answer): (Int, RetryBudgetState.Answer) = state.withLock { state in
            let ticket = state.nextTicket()
            let answer = state.budgets[traffic.index]
                .ask(cause, turn: turn, ticket: ticket, now: begun, using: &generator)
            guard case .wait(let until) = answer else { return (ticket, answer) }
            guard state.waiting < inForce.rules.maxWaiting else {
                state.budgets[traffic.index].withdraw(ticket)
                return (ticket, .stop)
            }
            state.waiting += 1
            state.sleepers[ticket] = Sleeper(until: until)
            return (ticket, answer)
        }
        guard case .wait = answer else { return answer.grant }
        defer { isWaiting(nil) }
        while case .wait(let until) = answer {
            isWaiting(MonotonicInstant(sinceOrigin: until))
            do {
                try await sleep(ticket, until: until, context: context)
            } catch {
                leave(ticket, traffic: traffic, now: context.clock.now)
                throw error
            }
            // Some clocks wake a little early, and those of tests at once.
            let now = max(context.clock.now.sinceOrigin, until)
            let latest = deadline()
            answer = state.withLock { state in
                guard let sleeper = state.sleepers[ticket] else { return .stop }
                var answer = sleeper.answer ?? .wait(until: sleeper.until)
                if sleeper.answer == nil, sleeper.until >= until {
                    answer = state.budgets[traffic.index].askAgain(ticket, now: now, using: &generator)
                }
                if case .stop = answer, latest != end {
                    end = latest
                    let turn = rules.turn(since: begun, now: now, deadline: latest)
                    answer = state.budgets[traffic.index]
                        .ask(cause, turn: turn, ticket: ticket, now: now, using: &generator)
                }
                if case .wait(let until) = answer {
                    state.sleepers[ticket] = Sleeper(until: until)
                } else {
                    state.sleepers[ticket] = nil
                    state.waiting -= 1
                }
                return answer
            }
        }
        return answer.grant
    }

    /// Leaves the queue; returns what was granted meanwhile.
    private func leave(_ ticket: Int, traffic: Traffic, now: MonotonicInstant) {
        var generator = random.generator
        let woken: [Task<Void, Never>] = state.withLock { state in
            state.waiting -= 1
            state.budgets[traffic.index].withdraw(ticket)
            guard let grant = state.sleepers.removeValue(forKey: ticket)?.answer?.grant else { return [] }
            return state.tell(
                state.budgets[traffic.index].giveBack(grant, now: now.sinceOrigin, using: &generator)
            )
        }
        for task in woken { task.cancel() }
    }

    /// Sleeps until a time, or until the wait is ended or shortened.
    private func sleep(_ ticket: Int, until: Duration, context: CallContext) async throws {
        try Task.checkCancellation()
        let task = context.background.start { [clock = context.clock] in
            // Whether it was woken early or not, the waiting call checks the reason.
            _ = try? await clock.sleep(until: MonotonicInstant(sinceOrigin: until))
        }
        let isOver = state.withLock { state in
            guard let sleeper = state.sleepers[ticket], sleeper.answer == nil, sleeper.until >= until else {
                return true
            }
            state.sleepers[ticket]?.task = task
            return false
        }
        if isOver { task.cancel() }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        try Task.checkCancellation()
    }

    // MARK: Gates

    /// Whether a gate may be closed, or needs to see responses: known without a lock and without the time.
    var mayBeClosed: Bool { isHeldBack.load(ordering: .relaxed) }

    /// Asks the gates about a call.
    func check(_ place: GatePlace, admitsProbe: Bool, now: MonotonicInstant) -> RetryGates.Answer {
        guard mayBeClosed else { return .open }
        return state.withLock { state in
            let answer = state.gates.check(
                place,
                admitsProbe: admitsProbe,
                longestWait: inForce.rules.maxServerDelay,
                now: now.sinceOrigin
            )
            isHeldBack.store(!state.gates.isEmpty, ordering: .relaxed)
            return answer
        }
    }

    /// Waits at a closed gate until `end`, or until a probe has opened it.
    ///
    /// - Throws: `CancellationError` promptly if the task is cancelled, and nothing else.
    func rest(at gate: RetryGates.Gate, until end: MonotonicInstant, _ context: CallContext) async throws {
        let now = context.clock.now.sinceOrigin
        let ticket: Int? = state.withLock { state in
            if let scope = gate.scope, !state.gates.isClosed(scope: scope, now: now) { return nil }
            let ticket = state.nextTicket()
            state.sleepers[ticket] = Sleeper(until: end.sinceOrigin, scope: gate.scope)
            return ticket
        }
        guard let ticket else { return }
        defer { state.withLock { _ = $0.sleepers.removeValue(forKey: ticket) } }
        var until = end.sinceOrigin
        while true {
            try await sleep(ticket, until: until, context: context)
            let moved = state.withLock { $0.sleepers[ticket]?.until ?? until }
            if moved >= until { return }
            until = moved
        }
    }

    /// Whether a gate of the origin, or of the request's resource, is closed now.
    func isClosed(for request: URLRequest, now: MonotonicInstant) -> Bool {
        guard mayBeClosed else { return false }
        let resource = GatePlace.resource(of: request)
        return state.withLock { $0.gates.isClosed(for: resource, now: now.sinceOrigin) }
    }

    // MARK: Pace, places and counts

    /// Whether the account has state that must not be forgotten: waiting calls, a closed gate, a budget that is not full.
    ///
    /// An account that was forgotten and made again is new, and its budget must not be larger than it was.
    func isBusy(now: MonotonicInstant) -> Bool {
        let now = now.sinceOrigin
        return state.withLock { state in
            state.waiting > 0 || !state.sleepers.isEmpty || state.gates.lastOpening(now: now) != nil
                || !state.budgets.allSatisfy { $0.isRested(now: now) }
        }
    }

    /// How long the learned rate requires to wait before asking again; nil: send now, the attempt is counted. One that is not made
    /// is to be given back.
    func pace(now: MonotonicInstant) -> Duration? {
        guard inForce.rules.pacesAdaptively else { return nil }
        let wait = state.withLock { $0.pacing.acquire(now: now.sinceOrigin) }
        return wait > .zero ? wait : nil
    }

    /// Returns what ``pace(now:)`` counted for an attempt that was not made.
    func giveBackPace() {
        state.withLock { $0.pacing.giveBack() }
    }

    /// Tells the learned rate how the server responded to an attempt.
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

    /// Takes a place among the waiting calls; false if there are too many. A place that was taken must be released.
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

    /// Records why a call made no further attempt.
    func stopped(_ reason: StopReason) {
        state.withLock { $0.counts.note(reason) }
    }

    /// The status for observers.
    func status(now: MonotonicInstant) -> RetryStatus {
        state.withLock { state in
            RetryStatus(
                balance: state.budgets[Traffic.caller.index].balance(now: now.sinceOrigin),
                gateOpens: state.gates.lastOpening(now: now.sinceOrigin).map { MonotonicInstant(sinceOrigin: $0) },
                waiting: state.waiting,
                learnedRate: state.pacing.rate,
                counts: state.counts
            )
        }
    }
}

extension RetryBudgetState.Answer {
    fileprivate var grant: RetryGrant? {
        guard case .go(let grant) = self else { return nil }
        return grant
    }
}

extension RetryRules {
    /// How long a retry that is due waits while retries fail.
    fileprivate var patience: Duration { parks ? maxParking : PoolRules.patience }

    /// The turn, at `now`, of a retry that was due at `begun`: its patience lasts from then.
    fileprivate func turn(since begun: Duration, now: Duration, deadline: MonotonicInstant?) -> RetryTurn {
        RetryTurn(
            patience: begun + patience - now,
            end: deadline.map { $0.sinceOrigin - minimumAttemptTime } ?? begun + max(patience, maxParking)
        )
    }
}

extension GatePlace {
    init(_ request: URLRequest, credential: Int) {
        self.init(resource: GatePlace.resource(of: request), credential: credential)
    }

    /// The URL without its query.
    static func resource(of request: URLRequest) -> Int {
        var hasher = Hasher()
        for byte in (request.url?.absoluteString ?? "").utf8 {
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { break }
            hasher.combine(byte)
        }
        return hasher.finalize()
    }
}
