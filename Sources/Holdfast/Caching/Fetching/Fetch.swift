// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// One exchange that any number of equal calls wait for: collapsed forwarding (RFC 9111 §4).
///
/// The fetch owns the exchange. Every waiting call is a reader, including the one that opened it: it may leave at any time, and the
/// last one to leave ends the exchange.
final class Fetch: Sendable {
    /// Why a wait for the ending is over.
    enum WaitResult: Sendable {
        case ended(Ending)
        /// Something that the reader is interested in has changed; check it and wait again.
        case again
        case cancelled
    }

    /// Changes that a waiting reader wants to know before the ending.
    struct WakeReason: OptionSet, Sendable {
        let rawValue: UInt8
        /// The fetch's deadline, which the reader relied on, was extended.
        static let deadline = WakeReason(rawValue: 1)
        /// The exchange pauses before its next attempt.
        static let backoff = WakeReason(rawValue: 2)
    }

    /// A reader to be woken, once no lock is held.
    struct Waiter: Sendable {
        fileprivate let wakeReasons: WakeReason
        fileprivate let continuation: CheckedContinuation<WaitResult, Never>

        func wake() { continuation.resume(returning: .again) }
    }

    /// What to do once no lock is held.
    struct Effects: Sendable {
        fileprivate var waiters: [Waiter] = []
        fileprivate var body: SharedBody?

        func apply() {
            for waiter in waiters { waiter.wake() }
            body?.goOn()
        }
    }

    /// What a reader uses while it waits.
    struct WaitState: Sendable {
        /// The latest deadline of all current and former readers; nil: no limit.
        let deadline: MonotonicInstant?
        /// Until when the exchange waits between two attempts; nil during an attempt.
        let backsOffUntil: MonotonicInstant?
        fileprivate let version: UInt64
    }

    /// The result of an attempt to join.
    enum JoinResult {
        /// The waiters relied on a deadline that was extended, and must be woken.
        case joined([Waiter])
        case joinedLate
        /// The response was shared, and its body is no longer available.
        case over
        case refused
    }

    private struct State {
        var ending: Ending?
        var isGivenUp = false
        var isSent = false
        var hasArrived = false
        var firstHasStale = false
        var firstIsAnsweredStale = false
        /// No answer was requested before this: first the opening of the fetch, later the time of the answered request.
        var order = RequestOrder.latest
        var isOver = false
        /// Whether the fetch can be joined until somebody closes it, although the exchange is over.
        var staysOpen = false
        var readers: Int
        var firstIsPresent: Bool
        /// Whether the exchange continues without readers.
        var isBackground: Bool
        /// Whether the exchange may still be left to another process.
        var mayYield: Bool
        var deadline: MonotonicInstant?
        var backsOffUntil: MonotonicInstant?
        /// How often the deadline or the backoff has changed, so that no change is missed between checking and waiting.
        var version: UInt64 = 0
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0

        /// Records a change and removes those who wait for it.
        mutating func takeWaiters(_ reason: WakeReason) -> [Waiter] {
            version &+= 1
            let ids = waiters.filter { $0.value.wakeReasons.contains(reason) }.map(\.key)
            return ids.compactMap { waiters.removeValue(forKey: $0) }
        }
    }

    /// What a call must have in common with the one that opened the fetch.
    let terms: FetchTerms
    /// Whether no call may join, since there may be no response.
    let isExclusive: Bool
    private let state: Mutex<State>

    /// A fetch with one reader, or with none if it runs in the background.
    ///
    /// - Parameter mayYield: whether the exchange may be left to another process, so that the readers must look again.
    init(
        _ terms: FetchTerms,
        deadline: MonotonicInstant?,
        isBackground: Bool,
        mayYield: Bool = false,
        isExclusive: Bool = false
    ) {
        self.terms = terms
        self.isExclusive = isExclusive
        state = Mutex(
            State(
                readers: isBackground ? 0 : 1,
                firstIsPresent: !isBackground,
                isBackground: isBackground,
                mayYield: mayYield,
                deadline: deadline
            )
        )
    }

    /// The latest deadline of all current and former readers; nil: no limit.
    var deadline: MonotonicInstant? { state.withLock { $0.deadline } }

    var waitState: WaitState {
        state.withLock { WaitState(deadline: $0.deadline, backsOffUntil: $0.backsOffUntil, version: $0.version) }
    }

    /// Whether the exchange continues without readers.
    var isBackground: Bool { state.withLock { $0.isBackground } }

    /// Whether the exchange continues although nobody waits for it.
    var isUnattended: Bool { state.withLock { $0.isBackground && $0.readers == 0 } }

    /// How many calls have joined and not left.
    var readers: Int { state.withLock { $0.readers } }

    /// Whether the call that opened the fetch waits for it, or has its response.
    var isFirstPresent: Bool { state.withLock { $0.firstIsPresent } }

    /// Whether nobody waits for the exchange any more.
    var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    /// Whether the exchange may still be left to another process.
    var mayYield: Bool { state.withLock { $0.mayYield } }

    /// Whether the request has been sent, so that the answer may be older than a new call.
    var isSent: Bool { state.withLock { $0.isSent } }

    // MARK: The exchange's side

    /// Excludes leaving the exchange to another process.
    func goAhead() {
        state.withLock { $0.mayYield = false }
    }

    /// Records that a request was answered.
    func received(_ order: HybridTimestamp) {
        state.withLock { $0.order = order }
    }

    /// Lets calls join after the exchange is over: the response is stored once its first caller has accepted it.
    func stayOpen() {
        state.withLock { $0.staysOpen = true }
    }

    /// Whether calls may join until the fetch is closed.
    var staysOpen: Bool { state.withLock { $0.staysOpen } }

    /// Records that the request is about to be sent.
    func send() {
        state.withLock { $0.isSent = true }
    }

    /// Whether the call that opened the fetch has something stale instead; does not change once the response has arrived.
    var firstHasStale: Bool { state.withLock { $0.firstHasStale } }

    /// Whether the call that opened the fetch gets something stale in place of the response, so that its verdict is about that.
    var firstIsAnsweredStale: Bool { state.withLock { $0.firstIsAnsweredStale } }

    /// Records that the call that opened the fetch gets something stale in place of the response.
    func answersFirstStale() {
        state.withLock { $0.firstIsAnsweredStale = true }
    }

    /// Records that the response has arrived.
    func arrive() {
        state.withLock { $0.hasArrived = true }
    }

    /// Takes over the task that runs the exchange; cancels it at once if nobody waits any more.
    func adopt(_ task: Task<Void, Never>) {
        let isGivenUp = state.withLock { state in
            if state.ending == nil, !state.isGivenUp { state.task = task }
            return state.isGivenUp
        }
        if isGivenUp { task.cancel() }
    }

    /// Records that the exchange waits before its next attempt, or continues if `instant` is nil.
    func isBackingOff(until instant: MonotonicInstant?) {
        let waiters = state.withLock { state in
            state.backsOffUntil = instant
            return instant == nil ? [] : state.takeWaiters(.backoff)
        }
        for waiter in waiters { waiter.wake() }
    }

    /// Tells all waiting calls the result of the exchange; a shared body gets a reader for each of them.
    ///
    /// - Returns: whether anybody can use the response; otherwise its body must be discarded.
    @discardableResult
    func finish(_ ending: Ending) -> Bool {
        let (isWanted, waiters): (Bool, [Waiter]) = state.withLock { state in
            var isWanted = true
            if case .answered(let answer) = ending {
                isWanted = answer.isShared ? state.readers > 0 || state.isBackground : state.firstIsPresent
                if isWanted { answer.body?.open(readers: state.readers, goesOn: state.isBackground) }
            }
            if !isWanted { state.isGivenUp = true }
            state.ending = ending
            state.task = nil
            defer { state.waiters = [:] }
            return (isWanted, Array(state.waiters.values))
        }
        for waiter in waiters { waiter.continuation.resume(returning: .ended(ending)) }
        return isWanted
    }

    /// Ends the exchange, including its body; returns whether it counted as background work.
    func end() -> Bool {
        state.withLock { state in
            state.isOver = true
            return state.isBackground
        }
    }

    /// Lets the exchange continue without readers; nil if it already does, or if it is too late.
    func enterBackground() -> Effects? {
        state.withLock { state in
            guard !state.isBackground, !state.isOver, !state.isGivenUp else { return nil }
            var effects = Effects()
            switch state.ending {
            case .failed?, .elsewhere?: return nil
            case .answered(let answer)?:
                guard let body = answer.body else { return nil }
                effects.body = body
            case nil: break
            }
            state.isBackground = true
            state.deadline = nil
            effects.waiters = state.takeWaiters(.deadline)
            return effects
        }
    }

    // MARK: The readers' side

    /// Adds a reader, who must wait or leave.
    ///
    /// - Parameters:
    ///   - late: whether a response is acceptable whose head has already arrived.
    ///   - yielding: whether the reader can look again if the exchange is left to another process.
    ///   - newestOrder: of what the reader may already have been given: an older response must not answer it (RFC 9111 §4).
    func join(
        until deadline: MonotonicInstant?,
        late: Bool,
        yielding: Bool = true,
        newestOrder: HybridTimestamp? = nil
    ) -> JoinResult {
        state.withLock { state in
            if state.isGivenUp || state.mayYield && !yielding { return .refused }
            if let newestOrder, newestOrder > state.order { return .refused }
            if let ending = state.ending {
                guard late, case .answered(let answer) = ending, answer.isShared else { return .refused }
                // A body in memory is available as long as the fetch can be found.
                guard answer.body?.reserveReader() ?? (answer.response.body.source == nil) else { return .over }
                state.readers += 1
                return .joinedLate
            }
            state.readers += 1
            guard let latest = state.deadline, deadline.map({ $0 > latest }) ?? true else { return .joined([]) }
            state.deadline = deadline
            // Readers that relied on the fetch having their deadline must now watch the clock themselves.
            return .joined(state.takeWaiters(.deadline))
        }
    }

    /// Removes a reader; the last one ends an exchange that nobody else needs.
    ///
    /// - Parameter isFirst: whether it is the reader that opened the fetch.
    /// - Returns: whether the fetch is given up.
    @discardableResult
    func leave(isFirst: Bool) -> Bool {
        let (task, body, unwanted): (Task<Void, Never>?, SharedBody?, ResponseBody?) = state.withLock { state in
            state.readers -= 1
            if isFirst { state.firstIsPresent = false }
            if case .answered(let answer)? = state.ending {
                // A response that is only for one reader is dropped with it.
                return (nil, answer.body, isFirst && !answer.isShared ? answer.response.body : nil)
            }
            guard state.ending == nil, state.readers == 0, !state.isBackground else { return (nil, nil, nil) }
            state.isGivenUp = true
            return (state.task, nil, nil)
        }
        body?.releaseReader()
        unwanted?.discard()
        task?.cancel()
        return isGivenUp
    }

    /// Lets the call that opened the fetch have something stale, so that the exchange itself decides about its response;
    /// false if the response has arrived meanwhile.
    @discardableResult
    func leavesFirstStale() -> Bool {
        state.withLock { state in
            if !state.hasArrived, state.ending == nil { state.firstHasStale = true }
            return state.firstHasStale
        }
    }

    /// Waits for the ending, or for a change since `waitState` that the reader wants to know; cancelling the task ends the wait at
    /// once.
    func wait(wakingOn wakeReasons: WakeReason, since waitState: WaitState) async -> WaitResult {
        let id: UInt64 = state.withLock { state in
            state.nextWaiter &+= 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<WaitResult, Never>) in
                let known: WaitResult? = state.withLock { state in
                    if let ending = state.ending { return .ended(ending) }
                    // A cancellation before this line is seen here; a later one finds the waiter.
                    if Task.isCancelled { return .cancelled }
                    if !wakeReasons.isEmpty, state.version != waitState.version { return .again }
                    state.waiters[id] = Waiter(wakeReasons: wakeReasons, continuation: continuation)
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume(returning: .cancelled)
        }
    }
}

/// How a fetch ends.
extension Fetch {
    /// The result of the exchange.
    enum Ending: Sendable {
        case answered(Answer)
        case failed(Failure)
        /// Nothing was sent, since another process fetches the same: look again.
        case elsewhere(Elsewhere)
    }

    /// A response, and what is needed to pass it to several readers.
    struct Answer: Sendable {
        /// The response: unchanged for the first reader; others replace its body.
        let response: Response
        /// What the cache did with it.
        let outcome: ResponseOutcome
        /// What it nominates by Vary.
        let nominated: NominatedFields?
        /// Whether it is for all readers, and not only for the first.
        let isShared: Bool
        /// The body, if it is a stream that several readers share.
        let body: SharedBody?
        let exchange: SentExchange?
        let attempt: Int
        /// The call that began the exchange.
        let leader: CallID
    }

    /// An exchange without a response.
    struct Failure: Sendable {
        let error: any Error
        /// What was sent last; nil if nothing was, so that the cause is on this side.
        let exchange: SentExchange?
        let attempt: Int
        /// Whether the deadline of the fetch at that time cut the last attempt short.
        let wasCut: Bool
    }

    /// An exchange that was left to another process.
    struct Elsewhere: Sendable {
        /// The result of the other process; nil if it is not known yet.
        let outcome: LeaseOutcome?
        /// Whether the fetch has waited for it.
        let wasAwaited: Bool
    }
}
