// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// One exchange that any number of equal calls wait for: collapsed forwarding (RFC 9111 §4).
///
/// The fetch owns the exchange. Every call that waits is a reader, the one that opened it included: it may leave at any time, and
/// the last one to leave ends the exchange.
final class Fetch: Sendable {
    /// Why a wait for the ending is over.
    enum WaitResult: Sendable {
        case ended(Ending)
        /// Something has changed that the reader wanted to know of; look at it and wait again.
        case again
        case cancelled
    }

    /// What a waiting reader wants to know of before the ending.
    struct WakeReason: OptionSet, Sendable {
        let rawValue: UInt8
        /// The fetch's deadline has moved on: the reader relied on it.
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

    /// What is to be done once no lock is held.
    struct Effects: Sendable {
        fileprivate var waiters: [Waiter] = []
        fileprivate var body: SharedBody?

        func apply() {
            for waiter in waiters { waiter.wake() }
            body?.goOn()
        }
    }

    /// What a reader goes by while it waits.
    struct WaitState: Sendable {
        /// The latest deadline of all that wait or waited; nil: no limit.
        let deadline: MonotonicInstant?
        /// Until when the exchange rests between two attempts; nil while one is under way.
        let backsOffUntil: MonotonicInstant?
        fileprivate let version: UInt64
    }

    /// What came of an attempt to join.
    enum JoinResult {
        /// The waiters relied on a deadline that has moved on, and must be woken.
        case joined([Waiter])
        case joinedLate
        /// The response was shared, and its body is no longer at hand.
        case over
        case refused
    }

    private struct State {
        var ending: Ending?
        var isGivenUp = false
        var isSent = false
        /// No answer was asked for before this: when the fetch was opened, and then when the request was sent that has been answered.
        var order = RequestOrder.latest
        var isOver = false
        /// Whether the fetch may be joined until somebody closes it, although the exchange is over.
        var staysOpen = false
        var readers: Int
        var firstIsPresent: Bool
        /// Whether the exchange goes on without readers.
        var isBackground: Bool
        /// Whether the exchange may still be left to another process.
        var mayYield: Bool
        var deadline: MonotonicInstant?
        var backsOffUntil: MonotonicInstant?
        /// How often deadline or rests have changed, so that no change is missed between a look and a wait.
        var version: UInt64 = 0
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0

        /// Notes a change and takes out those who wait for it.
        mutating func takeWaiters(_ reason: WakeReason) -> [Waiter] {
            version &+= 1
            let ids = waiters.filter { $0.value.wakeReasons.contains(reason) }.map(\.key)
            return ids.compactMap { waiters.removeValue(forKey: $0) }
        }
    }

    /// What a call must have in common with the one that opened the fetch.
    let terms: FetchTerms
    /// Whether no call may join, since the response may turn out to be none.
    let isExclusive: Bool
    private let state: Mutex<State>

    /// A fetch with one reader, or with none where it runs in the background.
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

    /// The latest deadline of all that wait or waited; nil: no limit.
    var deadline: MonotonicInstant? { state.withLock { $0.deadline } }

    var waitState: WaitState {
        state.withLock { WaitState(deadline: $0.deadline, backsOffUntil: $0.backsOffUntil, version: $0.version) }
    }

    /// Whether the exchange goes on when nobody reads.
    var isBackground: Bool { state.withLock { $0.isBackground } }

    /// Whether the exchange goes on and nobody waits for it.
    var isUnattended: Bool { state.withLock { $0.isBackground && $0.readers == 0 } }

    /// How many calls have joined and not left again.
    var readers: Int { state.withLock { $0.readers } }

    /// Whether the call that opened the fetch waits for it, or has its response.
    var isFirstPresent: Bool { state.withLock { $0.firstIsPresent } }

    /// Whether nobody waits for the exchange any more.
    var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    /// Whether the exchange may still be left to another process.
    var mayYield: Bool { state.withLock { $0.mayYield } }

    /// Whether the request is on its way, so that the answer may be older than a call that comes now.
    var isSent: Bool { state.withLock { $0.isSent } }

    // MARK: The exchange's side

    /// The exchange will not be left to another process any more.
    func goAhead() {
        state.withLock { $0.mayYield = false }
    }

    /// A response has come to a request.
    func received(_ order: HybridTimestamp) {
        state.withLock { $0.order = order }
    }

    /// Lets calls join once the exchange is over: the response is stored when its first caller has accepted it.
    func stayOpen() {
        state.withLock { $0.staysOpen = true }
    }

    /// Whether calls may join until the fetch is closed.
    var staysOpen: Bool { state.withLock { $0.staysOpen } }

    /// The request is about to be sent.
    func send() {
        state.withLock { $0.isSent = true }
    }

    /// Takes over the task that runs the exchange; it is cancelled at once if nobody waits any more.
    func adopt(_ task: Task<Void, Never>) {
        let isGivenUp = state.withLock { state in
            if state.ending == nil, !state.isGivenUp { state.task = task }
            return state.isGivenUp
        }
        if isGivenUp { task.cancel() }
    }

    /// The exchange pauses before its next attempt, or goes on where `instant` is nil.
    func isBackingOff(until instant: MonotonicInstant?) {
        let waiters = state.withLock { state in
            state.backsOffUntil = instant
            return instant == nil ? [] : state.takeWaiters(.backoff)
        }
        for waiter in waiters { waiter.wake() }
    }

    /// Tells all who wait what came of the exchange; a body that they share gets a reader for each of them.
    ///
    /// - Returns: whether the response is of use to anybody; else its body must be discarded.
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

    /// The exchange has ended, its body included; whether it counted as background work.
    func end() -> Bool {
        state.withLock { state in
            state.isOver = true
            return state.isBackground
        }
    }

    /// Lets the exchange go on without readers; nil where it does already, or is beyond it.
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
    ///   - late: whether a response will do whose head is there already.
    ///   - yielding: whether the reader can look again where the exchange is left to another process.
    ///   - newestOrder: of what the reader may have been given already: an older response is none for it (RFC 9111 §4).
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
                // What lies in memory is at hand for as long as the fetch can be found.
                guard answer.body?.reserveReader() ?? (answer.response.body.source == nil) else { return .over }
                state.readers += 1
                return .joinedLate
            }
            state.readers += 1
            guard let latest = state.deadline, deadline.map({ $0 > latest }) ?? true else { return .joined([]) }
            state.deadline = deadline
            // Those who relied on the fetch's deadline being theirs need a look at the clock of their own now.
            return .joined(state.takeWaiters(.deadline))
        }
    }

    /// Takes a reader away; the last one ends an exchange that nobody else needs.
    ///
    /// - Parameter isFirst: whether it is the reader that opened the fetch.
    /// - Returns: whether the fetch is given up.
    @discardableResult
    func leave(isFirst: Bool) -> Bool {
        let (task, body, unwanted): (Task<Void, Never>?, SharedBody?, ResponseBody?) = state.withLock { state in
            state.readers -= 1
            if isFirst { state.firstIsPresent = false }
            if case .answered(let answer)? = state.ending {
                // What nobody else may have is dropped with the one it was for.
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

    /// Waits for the ending, or for a change since `waitState` that the reader wants to know of; cancelling the task ends the wait at once.
    func wait(wakingOn wakeReasons: WakeReason, since waitState: WaitState) async -> WaitResult {
        let id: UInt64 = state.withLock { state in
            state.nextWaiter &+= 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<WaitResult, Never>) in
                let known: WaitResult? = state.withLock { state in
                    if let ending = state.ending { return .ended(ending) }
                    // A cancellation that came before this line is seen here; a later one finds the waiter.
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
    /// What came of the exchange.
    enum Ending: Sendable {
        case answered(Answer)
        case failed(Failure)
        /// Nothing was sent, since another process fetches the same: look again.
        case elsewhere(Elsewhere)
    }

    /// A response, and what it takes to hand it to several readers.
    struct Answer: Sendable {
        /// The response, for the first reader as it is; others replace its body.
        let response: Response
        /// What the cache made of it.
        let outcome: ResponseOutcome
        /// What it nominates by Vary.
        let nominated: NominatedFields?
        /// Whether it is for all readers, and not for the first alone.
        let isShared: Bool
        /// The body, where it is a stream that several readers share.
        let body: SharedBody?
        let exchange: SentExchange?
        let attempt: Int
        /// The call that began the exchange.
        let leader: CallID
    }

    /// An exchange without a response.
    struct Failure: Sendable {
        let error: any Error
        /// What was sent last; nil where nothing was, so that the fault is on this side.
        let exchange: SentExchange?
        let attempt: Int
        /// Whether the last attempt ended where the deadline of the fetch, as it was by then, cut it short.
        let wasCut: Bool
    }

    /// An exchange that was left to another process.
    struct Elsewhere: Sendable {
        /// What came of that one's; nil where it is not known yet.
        let outcome: LeaseOutcome?
        /// Whether the fetch has waited for it.
        let wasAwaited: Bool
    }
}
