// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// What a caller takes for an answer: judged between the hooks of scope `.message` and those of scope `.call`, so that a
/// hook of scope `.call` is told of one final outcome, and a cache keeps only what was accepted.
public struct Acceptance: Sendable {
    /// Checks the final response; throws to refuse it. May read the body if it puts one back in its place.
    public let judge: @Sendable (_ response: inout Response) async throws -> Void

    /// Whether failed attempts are judged one by one, so that a bad 2xx can be retried; false by default.
    public var judgesAttempts = false

    /// Checks what a refresh in the background brings (RFC 5861 §3) before it replaces the stored response that the call was
    /// answered with; throws to refuse it, and the stored one stays. Nil by default, and `judge` for ``statuses(_:)``.
    ///
    /// Runs once the call is over or at the same time as the rest of it, so it may touch nothing of the call's. It is not asked
    /// about a 304 or a redirect, nor where a `.message` hook above the cache implements `onSuccess`, which might change the
    /// response before it is judged. What it was not asked about is judged when a call is answered with it.
    public var judgeRefresh: (@Sendable (_ response: inout Response) async throws -> Void)?

    /// An acceptance by a closure.
    public init(_ judge: @escaping @Sendable (_ response: inout Response) async throws -> Void) {
        self.judge = judge
    }

    /// Takes responses whose status lies in `statuses`, refuses others with `.unacceptableStatus`.
    public static func statuses(_ statuses: ClosedRange<Int>) -> Acceptance {
        var acceptance = Acceptance { response in
            guard statuses.contains(response.status.rawValue) else {
                throw ServiceError.unacceptableStatus(response, expected: statuses)
            }
        }
        acceptance.judgeRefresh = acceptance.judge
        return acceptance
    }

    /// Takes 200 to 299.
    public static let successful = Acceptance.statuses(200...299)
}

extension ServiceError {
    /// The error of a response that was not accepted for its status; knows how long to leave the server alone.
    package static func unacceptableStatus(_ response: Response, expected: ClosedRange<Int>) -> ServiceError {
        var error = ServiceError(
            .unacceptableStatus,
            "The server answered \(response.status.rawValue), outside \(expected); "
                + "the response is in this error's `response`.",
            response: response
        )
        error.attempts = response.attempts
        error.retryAfter = response.responseTime.flatMap { receivedAt in
            RetryAfter.delay(response.headForRetrying.fields, receivedAt: receivedAt)
        }
        return error
    }
}

/// The outcome of an acceptance, for those who must not act before it is known.
final class Verdict: Sendable {
    private enum State {
        case open([@Sendable (Bool) async -> Void])
        case decided(Bool)
    }

    private let state = Mutex(State.open([]))

    /// Runs `action` with the verdict: now if it is known, else when it becomes known.
    func whenDecided(_ action: @escaping @Sendable (Bool) async -> Void) async {
        let known: Bool? = state.withLock { state in
            switch state {
            case .open(var actions):
                actions.append(action)
                state = .open(actions)
                return nil
            case .decided(let accepted):
                return accepted
            }
        }
        if let known { await action(known) }
    }

    /// Decides, once; later decisions are ignored.
    func decide(_ accepted: Bool) async {
        let actions: [@Sendable (Bool) async -> Void] = state.withLock { state in
            guard case .open(let actions) = state else { return [] }
            state = .decided(accepted)
            return actions
        }
        for action in actions { await action(accepted) }
    }
}
