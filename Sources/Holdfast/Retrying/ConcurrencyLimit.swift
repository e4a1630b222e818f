// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport around another one that limits the number of exchanges in flight with each origin.
///
/// If the limit is reached, an attempt waits in a queue, first come, first served, until a place is free, its deadline passes
/// or its task is cancelled. If the deadline passes, or at once if the queue is full, it fails with ``ServiceError``
/// `.tooManyInFlight` and progress `.notSent`; circuits and budgets do not count this as a failure of the server. A place is
/// held until the response's body was read to its end, failed, or was dropped, since the connection is busy until then; a body
/// that is kept but never read keeps its place. 1,024 origins are remembered; idle ones that are least recently used are
/// forgotten first. Safe to use from any number of tasks.
public final class ConcurrencyLimit: WrappingTransport {
    package let transport: any Transport
    private let maxInFlight: Int
    private let maxWaiting: Int
    private let origins: OriginTable<WaitingLine>

    /// A limit around a transport.
    ///
    /// - Parameters:
    ///   - transport: sends what the limit lets through.
    ///   - maxInFlight: the most exchanges in flight with one origin; 100 by default, at least 1.
    ///   - maxWaiting: the most attempts in the queue of one origin; 1,000 by default, 0: attempts do not wait.
    public init(_ transport: any Transport, maxInFlight: Int = 100, maxWaiting: Int = 1000) {
        let (places, length) = (max(1, maxInFlight), max(0, maxWaiting))
        self.transport = transport
        self.maxInFlight = places
        self.maxWaiting = length
        origins = OriginTable(capacity: 1024, isIdle: { line, _ in line.isIdle }) { _ in
            WaitingLine(places: places, length: length)
        }
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let origin = OriginText(request)
        let line = line(of: origin, now: context.clock.now)
        switch line.enter() {
        case .taken: break
        case .full: throw refusal(of: origin)
        case .waits(let ticket): try await wait(in: line, ticket: ticket, origin: origin, context: context)
        }
        // Dropping it returns the place: after a failure, and with a response that has no more to read.
        let place = HeldPlace(line)
        try Task.checkCancellation()
        var response = try await transport.send(request, body: body, context: context)
        if let source = response.body.source {
            response.body = ResponseBody(
                WatchedBody(source, ended: { _, _ in place.leave() }),
                length: response.body.length
            )
        }
        return response
    }

    /// The places and the queue of an origin.
    func line(of origin: OriginText, now: MonotonicInstant) -> WaitingLine {
        origins.cell(of: origin, now: now)
    }

    private func wait(
        in line: WaitingLine,
        ticket: WaitingLine.Ticket,
        origin: OriginText,
        context: CallContext
    ) async throws {
        guard let deadline = context.attemptDeadline else { return try await line.wait(ticket) }
        let clock = context.clock
        let late = ServiceError(
            .tooManyInFlight,
            "The wait for one of the \(maxInFlight) exchanges with \(origin.text) took too long; allow more exchanges or more "
                + "time, and make sure that response bodies are read or dropped.",
            progress: .notSent
        )
        let timer = context.background.start {
            do {
                try await clock.sleep(until: deadline)
                line.abandon(ticket, error: late)
            } catch {
                // The timer was cancelled: the wait is over.
            }
        }
        defer { timer.cancel() }
        do {
            try await line.wait(ticket)
        } catch  where error.isCancellation && context.isPastDeadline {
            // Code outside that watches the same deadline may cancel before this timer fires.
            throw late
        }
    }

    private func refusal(of origin: OriginText) -> ServiceError {
        ServiceError(
            .tooManyInFlight,
            "\(maxInFlight) exchanges with \(origin.text) are in flight and \(maxWaiting) are waiting; send fewer at a time, or "
                + "raise the limit if the server can handle it.",
            progress: .notSent
        )
    }
}

/// A number of places, and a queue for them: first come, first served.
final class WaitingLine: Sendable {
    /// The result of a request for a place.
    enum Entry {
        case taken
        case waits(Ticket)
        case full
    }

    /// A place in the queue.
    struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    private enum Waiter {
        case joined
        case waiting(CheckedContinuation<Void, any Error>)
        case called
        case abandoned(any Error)

        var isInLine: Bool {
            switch self {
            case .joined, .waiting: true
            case .called, .abandoned: false
            }
        }
    }

    private struct State {
        var taken = 0
        var lastNumber: UInt64 = 0
        /// The tickets in the queue, in order; numbers that have left are skipped.
        var order: ArraySlice<Ticket> = []
        var waiters: [Ticket: Waiter] = [:]
        var waitingCount = 0

        mutating func join() -> Ticket {
            lastNumber += 1
            let ticket = Ticket(number: lastNumber)
            // Tickets that left before their turn must not pile up behind one that never leaves.
            if order.count > 2 * waitingCount + 16 { order = order.filter { waiters[$0]?.isInLine == true }[...] }
            order.append(ticket)
            waiters[ticket] = .joined
            waitingCount += 1
            return ticket
        }

        /// Frees a place, or passes it to the next in the queue.
        mutating func leave() -> CheckedContinuation<Void, any Error>? {
            while let next = order.popFirst() {
                switch waiters[next] {
                case .joined:
                    waiters[next] = .called
                    waitingCount -= 1
                    return nil
                case .waiting(let continuation):
                    waiters[next] = nil
                    waitingCount -= 1
                    return continuation
                case .called, .abandoned, nil:
                    continue
                }
            }
            taken -= 1
            return nil
        }
    }

    private let places: Int
    private let length: Int
    private let state = Mutex(State())

    init(places: Int, length: Int) {
        self.places = places
        self.length = length
    }

    /// Whether nobody has a place or waits for one.
    var isIdle: Bool { state.withLock { $0.taken == 0 } }

    /// How many places are taken, and how many wait.
    var counts: (taken: Int, waiting: Int) { state.withLock { ($0.taken, $0.waitingCount) } }

    /// Takes a free place, or else joins the queue; a ticket must be waited for.
    func enter() -> Entry {
        state.withLock { state in
            if state.taken < places {
                state.taken += 1
                return .taken
            }
            return state.waitingCount < length ? .waits(state.join()) : .full
        }
    }

    /// Waits for the ticket's turn; the place is taken when it returns.
    ///
    /// - Throws: `CancellationError` promptly, or the error that the ticket was abandoned with; then no place is taken.
    func wait(_ ticket: Ticket) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    switch state.waiters[ticket] {
                    case .joined:
                        state.waiters[ticket] = .waiting(continuation)
                        return nil
                    case .abandoned(let error):
                        state.waiters[ticket] = nil
                        return .failure(error)
                    case .called:
                        state.waiters[ticket] = nil
                        return .success(())
                    case .waiting, nil:
                        // Nobody waits twice for one ticket.
                        return .failure(CancellationError())
                    }
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            abandon(ticket, error: CancellationError())
        }
    }

    /// Removes a ticket from the queue; does nothing if its turn has come.
    func abandon(_ ticket: Ticket, error: any Error) {
        let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
            switch state.waiters[ticket] {
            case .joined:
                state.waiters[ticket] = .abandoned(error)
                state.waitingCount -= 1
                return nil
            case .waiting(let continuation):
                state.waiters[ticket] = nil
                state.waitingCount -= 1
                return continuation
            case .called, .abandoned, nil:
                return nil
            }
        }
        continuation?.resume(throwing: error)
    }

    /// Returns a place.
    func leave() {
        let next = state.withLock { $0.leave() }
        next?.resume()
    }
}

/// A place in a ``WaitingLine`` that is returned exactly once: explicitly, or with its last reference.
final class HeldPlace: Sendable {
    private let line: WaitingLine
    private let isLeft = Atomic(false)

    init(_ line: WaitingLine) { self.line = line }

    deinit {
        leave()
    }

    func leave() {
        guard !isLeft.exchange(true, ordering: .acquiringAndReleasing) else { return }
        line.leave()
    }
}
