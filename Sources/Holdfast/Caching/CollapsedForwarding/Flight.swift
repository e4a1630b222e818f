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
    /// What came of the exchange.
    enum Ending: Sendable {
        case answered(Answer)
        /// No response; whether anything was sent tells a failure of the network from one on this side.
        case failed(any Error, wasSent: Bool)
    }

    /// Why a wait for the ending is over.
    enum Turn: Sendable {
        case landed(Ending)
        /// Deadline or prospects of the flight have changed; look at them and wait again.
        case again
        case cancelled
    }

    /// A response, and what it takes to hand it to several readers.
    struct Answer: Sendable {
        /// The response, for the first reader as it is; others replace its body.
        let response: Response
        /// What the cache made of it.
        let outcome: HopOutcome
        /// The body, where it is a stream that several readers share.
        let body: SharedBody?
        let exchange: SentExchange?
        let attempt: Int
    }

    private struct State {
        var ending: Ending?
        var isShared = false
        var isGivenUp = false
        var readers = 0
        var firstIsPresent: Bool
        /// Whether the exchange goes on without readers.
        var isBackground = false
        var deadline: MonotonicInstant?
        var restsUntil: MonotonicInstant?
        var task: Task<Void, Never>?
        var waiters: [UInt64: CheckedContinuation<Turn, Never>] = [:]
        var nextWaiter: UInt64 = 0

        mutating func takeWaiters() -> [CheckedContinuation<Turn, Never>] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }
    }

    /// What a call must have in common with the one that opened the flight.
    let terms: FlightTerms
    private let state: Mutex<State>

    /// A flight with one reader, or with none where it runs in the background.
    init(_ terms: FlightTerms, deadline: MonotonicInstant?, isBackground: Bool) {
        self.terms = terms
        var state = State(firstIsPresent: !isBackground)
        state.deadline = deadline
        state.isBackground = isBackground
        state.readers = isBackground ? 0 : 1
        self.state = Mutex(state)
    }

    /// The latest deadline of all that wait or waited; nil: no limit.
    var deadline: MonotonicInstant? { state.withLock { $0.deadline } }

    /// Until when the exchange rests between two attempts; nil while one is under way.
    var restsUntil: MonotonicInstant? { state.withLock { $0.restsUntil } }

    /// Takes over the task that runs the exchange; it is cancelled at once if nobody waits any more.
    func adopt(_ task: Task<Void, Never>) {
        let isGivenUp = state.withLock { state in
            if state.ending == nil, !state.isGivenUp { state.task = task }
            return state.isGivenUp
        }
        if isGivenUp { task.cancel() }
    }

    /// Adds a reader, who must wait or leave.
    ///
    /// - Returns: false where the flight takes none: it was given up, or its response is not shared.
    func join(until deadline: MonotonicInstant?) -> Bool {
        let (joined, waiters): (Bool, [CheckedContinuation<Turn, Never>]) = state.withLock { state in
            if state.isGivenUp { return (false, []) }
            if let ending = state.ending {
                guard state.isShared, case .answered(let answer) = ending, let body = answer.body else {
                    return (false, [])
                }
                guard body.reserveSeat() else { return (false, []) }
                state.readers += 1
                return (true, [])
            }
            state.readers += 1
            guard let latest = state.deadline, deadline.map({ $0 > latest }) ?? true else { return (true, []) }
            state.deadline = deadline
            // Those who relied on the flight's deadline being theirs need a look at the clock of their own now.
            return (true, state.takeWaiters())
        }
        for waiter in waiters { waiter.resume(returning: .again) }
        return joined
    }

    /// Takes a reader away; the last one ends an exchange that nobody else needs.
    ///
    /// - Parameters:
    ///   - isFirst: whether it is the reader that opened the flight.
    ///   - staysUp: whether the exchange goes on in the background, so that its response is stored.
    func leave(isFirst: Bool, staysUp: Bool = false) {
        let (task, body): (Task<Void, Never>?, SharedBody?) = state.withLock { state in
            state.readers -= 1
            if isFirst { state.firstIsPresent = false }
            if staysUp {
                state.isBackground = true
                state.deadline = nil
            }
            if case .answered(let answer)? = state.ending {
                // What nobody else may have is dropped with the one it was for.
                if isFirst, !state.isShared { answer.response.body.discard() }
                return (nil, answer.body)
            }
            guard state.ending == nil, state.readers == 0, !state.isBackground else { return (nil, nil) }
            state.isGivenUp = true
            return (state.task, nil)
        }
        body?.releaseSeat()
        task?.cancel()
    }

    /// Whether the exchange goes on when nobody reads.
    var isBackground: Bool { state.withLock { $0.isBackground } }

    /// Whether the ending is for all readers and not for the first alone.
    var isShared: Bool { state.withLock { $0.isShared } }

    /// Whether nobody waits for the exchange any more.
    var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    /// The exchange pauses before its next attempt.
    func rests(until instant: MonotonicInstant?) {
        let waiters = state.withLock { state in
            state.restsUntil = instant
            return instant == nil ? [] : state.takeWaiters()
        }
        for waiter in waiters { waiter.resume(returning: .again) }
    }

    /// Tells all who wait what came of it.
    ///
    /// - Parameters:
    ///   - isShared: whether it is for all readers, and not for the first alone.
    ///   - prepare: makes the ending from the number of readers present, whose seats it reserves, and from whether the first is
    ///     among them; it must not call the flight.
    func land(isShared: Bool, _ prepare: (_ readers: Int, _ firstIsPresent: Bool, _ isBackground: Bool) -> Ending) {
        let (ending, waiters) = state.withLock { state in
            let ending = prepare(state.readers, state.firstIsPresent, state.isBackground)
            state.ending = ending
            state.isShared = isShared
            state.task = nil
            return (ending, state.takeWaiters())
        }
        for waiter in waiters { waiter.resume(returning: .landed(ending)) }
    }

    /// Waits for the ending, or for a change that a reader must look at; cancelling the task ends the wait at once.
    func wait() async -> Turn {
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
                    state.waiters[id] = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: .cancelled)
        }
    }
}

/// What the cache made of a response on its way up.
struct HopOutcome: Sendable {
    /// The stored response that a 304 selected.
    var held: HeldResponse?
    /// What the response's Vary nominates, where it was stored.
    var nominated: NominatedFields?
    /// Why the response was not stored; nil where it was, or is being stored.
    var notStored: CacheReason?
    /// The entry that is being written while the body passes.
    var storing: StoringBody?

    /// What became of the response, for explanations.
    var storage: CacheDecision.Storage? {
        held == nil ? notStored.map { .notStored($0) } ?? .stored : nil
    }

    /// Whether the response may answer other calls of the same key: what may be stored may, no more.
    var isShareable: Bool { held != nil || notStored == nil }
}
