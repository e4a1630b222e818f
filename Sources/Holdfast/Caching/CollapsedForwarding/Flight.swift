// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// One exchange that any number of equal calls wait for: collapsed forwarding (RFC 9111 §4).
///
/// The flight owns the exchange. Every call that waits is a reader, the one that opened it included: it may leave at any time, and
/// the last one to leave ends the exchange.
final class Flight: Sendable {
    /// Why a wait for the ending is over.
    enum Turn: Sendable {
        case landed(Ending)
        /// Something has changed that the reader wanted to know of; look at it and wait again.
        case again
        case cancelled
    }

    /// What a waiting reader wants to know of before the ending.
    struct Heed: OptionSet, Sendable {
        let rawValue: UInt8
        /// The flight's deadline has moved on: the reader relied on it.
        static let deadline = Heed(rawValue: 1)
        /// The exchange pauses before its next attempt.
        static let rests = Heed(rawValue: 2)
    }

    /// A reader to be woken, once no lock is held.
    struct Waiter: Sendable {
        fileprivate let heeds: Heed
        fileprivate let continuation: CheckedContinuation<Turn, Never>

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
    struct Prospects: Sendable {
        /// The latest deadline of all that wait or waited; nil: no limit.
        let deadline: MonotonicInstant?
        /// Until when the exchange rests between two attempts; nil while one is under way.
        let restsUntil: MonotonicInstant?
        fileprivate let version: UInt64
    }

    /// What came of an attempt to join.
    enum Joining {
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
        /// No answer was asked for before this: when the flight was opened, and then when the request was sent that has been answered.
        var order = RequestOrder.latest
        var isOver = false
        var readers: Int
        var firstIsPresent: Bool
        /// Whether the exchange goes on without readers.
        var isBackground: Bool
        /// Whether the exchange may still be left to another process.
        var mayYield: Bool
        var deadline: MonotonicInstant?
        var restsUntil: MonotonicInstant?
        /// How often deadline or rests have changed, so that no change is missed between a look and a wait.
        var version: UInt64 = 0
        var task: Task<Void, Never>?
        var waiters: [UInt64: Waiter] = [:]
        var nextWaiter: UInt64 = 0

        /// Notes a change and takes out those who heed it.
        mutating func takeWaiters(_ heed: Heed) -> [Waiter] {
            version &+= 1
            let ids = waiters.filter { $0.value.heeds.contains(heed) }.map(\.key)
            return ids.compactMap { waiters.removeValue(forKey: $0) }
        }
    }

    /// What a call must have in common with the one that opened the flight.
    let terms: FlightTerms
    /// Whether no call may join, since the response may turn out to be none.
    let isExclusive: Bool
    private let state: Mutex<State>

    /// A flight with one reader, or with none where it runs in the background.
    ///
    /// - Parameter mayYield: whether the exchange may be left to another process, so that the readers must look again.
    init(
        _ terms: FlightTerms,
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

    var prospects: Prospects {
        state.withLock { Prospects(deadline: $0.deadline, restsUntil: $0.restsUntil, version: $0.version) }
    }

    /// Whether the exchange goes on when nobody reads.
    var isBackground: Bool { state.withLock { $0.isBackground } }

    /// Whether the exchange goes on and nobody waits for it.
    var isUnattended: Bool { state.withLock { $0.isBackground && $0.readers == 0 } }

    /// How many calls have joined and not left again.
    var readers: Int { state.withLock { $0.readers } }

    /// Whether the call that opened the flight waits for it, or has its response.
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
    func rests(until instant: MonotonicInstant?) {
        let waiters = state.withLock { state in
            state.restsUntil = instant
            return instant == nil ? [] : state.takeWaiters(.rests)
        }
        for waiter in waiters { waiter.wake() }
    }

    /// Tells all who wait what came of the exchange; a body that they share gets a seat for each of them.
    ///
    /// - Returns: whether the response is of use to anybody; else its body must be discarded.
    @discardableResult
    func land(_ ending: Ending) -> Bool {
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
        for waiter in waiters { waiter.continuation.resume(returning: .landed(ending)) }
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
    ) -> Joining {
        state.withLock { state in
            if state.isGivenUp || state.mayYield && !yielding { return .refused }
            if let newestOrder, newestOrder > state.order { return .refused }
            if let ending = state.ending {
                guard late, case .answered(let answer) = ending, answer.isShared else { return .refused }
                guard let body = answer.body, body.reserveSeat() else { return .over }
                state.readers += 1
                return .joinedLate
            }
            state.readers += 1
            guard let latest = state.deadline, deadline.map({ $0 > latest }) ?? true else { return .joined([]) }
            state.deadline = deadline
            // Those who relied on the flight's deadline being theirs need a look at the clock of their own now.
            return .joined(state.takeWaiters(.deadline))
        }
    }

    /// Takes a reader away; the last one ends an exchange that nobody else needs.
    ///
    /// - Parameter isFirst: whether it is the reader that opened the flight.
    /// - Returns: whether the flight is given up.
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
        body?.releaseSeat()
        unwanted?.discard()
        task?.cancel()
        return isGivenUp
    }

    /// Waits for the ending, or for a change since `prospects` that the reader heeds; cancelling the task ends the wait at once.
    func wait(heeding heeds: Heed, since prospects: Prospects) async -> Turn {
        let id: UInt64 = state.withLock { state in
            state.nextWaiter &+= 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Turn, Never>) in
                let known: Turn? = state.withLock { state in
                    if let ending = state.ending { return .landed(ending) }
                    // A cancellation that came before this line is seen here; a later one finds the waiter.
                    if Task.isCancelled { return .cancelled }
                    if !heeds.isEmpty, state.version != prospects.version { return .again }
                    state.waiters[id] = Waiter(heeds: heeds, continuation: continuation)
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.continuation.resume(returning: .cancelled)
        }
    }
}
