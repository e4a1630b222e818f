// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The answer to one question, given by whoever is first: a thread, or the cancellation of the task that waits.
final class OneAnswer<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, StoreError>

    private enum State {
        case open
        case waiting(CheckedContinuation<Outcome, Never>)
        case given(Outcome)
        case taken
    }

    private let state = Mutex(State.open)

    /// Asks, and waits for the answer; called once.
    func value(_ ask: () -> Void) async throws(StoreError) -> Value {
        let outcome: Outcome = await withCheckedContinuation { continuation in
            let early: Outcome? = state.withLock { state in
                if case .given(let outcome) = state {
                    state = .taken
                    return outcome
                }
                state = .waiting(continuation)
                return nil
            }
            if let early { return continuation.resume(returning: early) }
            ask()
        }
        return try outcome.get()
    }

    /// Answers; later answers are dropped.
    func give(_ outcome: Outcome) {
        let waiting: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            switch state {
            case .open:
                state = .given(outcome)
                return nil
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .given, .taken:
                return nil
            }
        }
        waiting?.resume(returning: outcome)
    }
}
