// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// A number of places, and a line of those who wait for one: first come, first served.
final class WaitingLine: Sendable {
    /// What becomes of one who wants a place.
    enum Entry {
        case taken
        case waits(Ticket)
        case full
    }

    /// A place in line.
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
        /// Those in line, in order; numbers that have left it are skipped.
        var order: ArraySlice<Ticket> = []
        var waiters: [Ticket: Waiter] = [:]
        var waitingCount = 0

        mutating func join() -> Ticket {
            lastNumber += 1
            let ticket = Ticket(number: lastNumber)
            // Those who left before their turn must not pile up behind one who never leaves.
            if order.count > 2 * waitingCount + 16 { order = order.filter { waiters[$0]?.isInLine == true }[...] }
            order.append(ticket)
            waiters[ticket] = .joined
            waitingCount += 1
            return ticket
        }

        /// Frees a place, or hands it to the next in line.
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

    /// Takes a place where one is free, else joins the line; a ticket must be waited for.
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
    /// - Throws: `CancellationError` promptly, or what the ticket was abandoned with; then no place is taken.
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
            abandon(ticket, CancellationError())
        }
    }

    /// Takes a ticket out of the line; nothing happens where its turn has come.
    func abandon(_ ticket: Ticket, _ error: any Error) {
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

    /// Gives a place back.
    func leave() {
        let next = state.withLock { $0.leave() }
        next?.resume()
    }
}
