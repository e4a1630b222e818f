// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Runs `operation`, but no longer than until `deadline` on `clock`.
///
/// For operations that may ignore cancellation: neither the deadline nor cancellation of the caller waits until the operation
/// returns. It is cancelled, and a late result is passed to `discard`.
///
/// - Parameter failure: the error at the deadline.
/// - Throws: ``ServiceError`` `.timeout` at the deadline, `CancellationError` at once if the caller is cancelled, or the
///   operation's own errors.
package func withDeadline<Success: Sendable>(
    _ deadline: MonotonicInstant,
    on clock: any HoldfastClock,
    failure: @autoclosure @escaping @Sendable () -> ServiceError = FailureMeaning.timeout.error(progress: .bodySent),
    discard: @escaping @Sendable (Success) -> Void,
    operation: @escaping @Sendable () async throws -> Success
) async throws -> Success {
    let race = Race<Success>(discard: discard)
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            guard race.begin(continuation) else { return }
            let runner = Task {
                do {
                    race.end(.success(try await operation()))
                } catch {
                    race.end(.failure(error))
                }
            }
            let timer = Task {
                do {
                    try await clock.sleep(until: deadline)
                    race.end(.failure(failure()))
                } catch {
                    // The timer was cancelled: the race is over.
                }
            }
            race.adopt([runner, timer])
        }
    } onCancel: {
        race.end(.failure(CancellationError()))
    }
}

/// Reads the content of a response, but no longer than until `deadline`.
///
/// - Parameters:
///   - deadline: the end of the call; nil: never.
///   - discard: is passed content that was read too late.
/// - Throws: ``ServiceError`` `.deadlineExceeded` at the deadline, `CancellationError` at once if the caller is cancelled, or the
///   errors of `take`.
package func takingContent<Taken: Sendable>(
    of response: Response,
    until deadline: CallDeadline?,
    on clock: any HoldfastClock,
    discard: @escaping @Sendable (Taken) -> Void = { _ in },
    take: @escaping @Sendable () async throws -> Taken
) async throws -> Taken {
    // Content that has already arrived needs no race.
    guard let deadline, response.body.source != nil else { return try await take() }
    let result: Result<Taken, any Error>
    do {
        result = try await withDeadline(
            deadline.instant,
            on: clock,
            discard: { if case .success(let late) = $0 { discard(late) } }
        ) {
            do {
                return .success(try await take())
            } catch {
                return .failure(error)
            }
        }
    } catch {
        response.body.discard()
        guard !error.isCancellation else { throw error }
        var error = ServiceError(
            .deadlineExceeded,
            deadline.limit.timedOut(
                "before all of its content had arrived",
                advice: "Allow more time, or request less."
            ),
            progress: .headReceived,
            response: response
        )
        error.attempts = response.attempts
        throw error
    }
    return try result.get()
}

/// The first of an operation, its timer and its caller's cancellation wins.
private final class Race<Success: Sendable>: Sendable {
    private enum State {
        case idle
        case running(CheckedContinuation<Success, any Error>, [Task<Void, Never>])
        case ended
    }

    private let state = Mutex(State.idle)
    private let discard: @Sendable (Success) -> Void

    init(discard: @escaping @Sendable (Success) -> Void) { self.discard = discard }

    /// Starts the race; false if the caller was already cancelled, in which case `continuation` has been resumed.
    func begin(_ continuation: CheckedContinuation<Success, any Error>) -> Bool {
        let begun: Bool = state.withLock { state in
            guard case .idle = state else { return false }
            state = .running(continuation, [])
            return true
        }
        if !begun { continuation.resume(throwing: CancellationError()) }
        return begun
    }

    /// Takes over the runners, to cancel them when the race ends, or at once if it has ended.
    func adopt(_ tasks: [Task<Void, Never>]) {
        let over: Bool = state.withLock { state in
            guard case .running(let continuation, _) = state else { return true }
            state = .running(continuation, tasks)
            return false
        }
        if over { for task in tasks { task.cancel() } }
    }

    func end(_ result: Result<Success, any Error>) {
        typealias Winner = (CheckedContinuation<Success, any Error>, [Task<Void, Never>])
        let (winner, late): (Winner?, Bool) = state.withLock { state in
            switch state {
            case .idle:
                state = .ended
                return (nil, false)
            case .running(let continuation, let tasks):
                state = .ended
                return ((continuation, tasks), false)
            case .ended:
                return (nil, true)
            }
        }
        if let (continuation, tasks) = winner {
            continuation.resume(with: result)
            for task in tasks { task.cancel() }
        } else if late, case .success(let value) = result {
            discard(value)
        }
    }
}
