// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Which responses a caller accepts: checked between the hooks of scope `.message` and those of scope `.call`, so that a hook
/// of scope `.call` sees one final outcome, and a cache keeps only accepted responses.
public struct Acceptance: Sendable {
    /// Checks the final response, and throws to reject it; may read the body if it puts another one in its place.
    public let check: @Sendable (_ response: inout Response) async throws -> Void

    /// Whether each attempt is checked, so that a bad 2xx can be retried; false by default.
    public var checksAttempts = false

    /// Checks the result of a background refresh (RFC 5861 §3) before it replaces the stored response that answered the call;
    /// if it throws, the stored one stays. Also the result of an exchange that goes on after `serveStaleAfter`. Nil by
    /// default, and `check` for ``statuses(_:)``.
    ///
    /// Runs after the call or concurrently with the rest of it, so it must not touch the call's state. It is not called for a
    /// 304 or a redirect, nor if a `.message` hook above the cache implements `onSuccess`, which might change the response
    /// before it is checked. Responses that it did not see are checked when they answer a call.
    public var checkRefresh: (@Sendable (_ response: inout Response) async throws -> Void)?

    /// An acceptance that calls a closure.
    public init(_ check: @escaping @Sendable (_ response: inout Response) async throws -> Void) {
        self.check = check
    }

    /// Accepts responses whose status is in `statuses`, and rejects others with `.unacceptableStatus`.
    public static func statuses(_ statuses: ClosedRange<Int>) -> Acceptance {
        var acceptance = Acceptance { response in
            guard statuses.contains(response.status.rawValue) else {
                throw ServiceError.unacceptableStatus(response, expected: statuses)
            }
        }
        acceptance.checkRefresh = acceptance.check
        return acceptance
    }

    /// Accepts 200 to 299.
    public static let successful = Acceptance.statuses(200...299)
}

extension ServiceError {
    /// The error for a response whose status was not accepted; it knows how long to leave the server alone.
    package static func unacceptableStatus(_ response: Response, expected: ClosedRange<Int>) -> ServiceError {
        var error = ServiceError(
            .unacceptableStatus,
            "The server answered \(response.status.rawValue) \(response.status.reasonPhrase), and this call only "
                + "accepts \(expected.lowerBound) to \(expected.upperBound). The response is in this error's `response`.",
            response: response
        )
        error.attempts = response.attempts
        error.retryAfter = response.responseTime.flatMap { receivedAt in
            RetryAfter.delay(response.headForRetrying.fields, receivedAt: receivedAt)
        }
        return error
    }
}

/// The result of an acceptance, for code that must not act before it is known.
final class Verdict: Sendable {
    private enum State {
        case open([@Sendable (Bool) async -> Void])
        case decided(Bool)
    }

    private let state = Mutex(State.open([]))

    /// Runs `action` with the verdict: now if it is known, otherwise once it is.
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
