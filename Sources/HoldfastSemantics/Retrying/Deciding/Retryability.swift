// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a failed attempt proves about the request (RFC 9110 §9.2.2).
public enum RetryClass: Sendable, Hashable {
    /// The server did not act on it: any method may be sent again.
    case unprocessed
    /// A reused connection was closed before any byte of a response: once more at once, on a new connection.
    case staleSocket
    /// The server may have acted on it.
    case ambiguous
    /// The server asks for less.
    case throttled
    /// Do not send it again, for this reason.
    case never(StopReason)
}

/// Sorts outcomes into retry classes.
public enum Retryability {
    /// The class of an outcome for one request.
    ///
    /// Where the server may have acted, only idempotent requests are sent again; content that cannot be replayed is sent
    /// again only if none of it was read.
    ///
    /// - Parameters:
    ///   - method: the request's method.
    ///   - outcome: how the attempt ended.
    ///   - bodyIsReplayable: whether the content can be sent from its start again; true for no content.
    ///   - declaredIdempotent: the caller's word on idempotency, such as by an Idempotency-Key; nil leaves it to the
    ///     method.
    public static func classify(
        method: RequestMethod,
        outcome: AttemptOutcome,
        bodyIsReplayable: Bool,
        declaredIdempotent: Bool?
    ) -> RetryClass {
        let proven: RetryClass
        var bodyIsUntouched = false
        switch outcome {
        case .response(let head):
            proven = provenClass(of: head)
        case .failure(let failure):
            proven = provenClass(of: failure)
            bodyIsUntouched = failure.progress == .notSent
        }
        if case .never = proven { return proven }
        guard bodyIsReplayable || bodyIsUntouched else { return .never(.notReplayable) }
        guard proven == .unprocessed || declaredIdempotent ?? method.isIdempotent else { return .never(.notIdempotent) }
        return proven
    }

    private static func provenClass(of failure: AttemptFailure) -> RetryClass {
        switch failure.kind {
        case .cancelled: return .never(.cancelled)
        case .certificate, .badRequest, .tooLarge: return .never(.notRetryable)
        default: break
        }
        if failure.progress == .notSent { return .unprocessed }
        if failure.kind == .connectionLost, failure.connectionReused, failure.progress < .headReceived {
            return .staleSocket
        }
        return .ambiguous
    }

    private static func provenClass(of head: ResponseHead) -> RetryClass {
        switch head.status {
        case .misdirectedRequest, .tooEarly: .unprocessed
        case .tooManyRequests, .serviceUnavailable: .throttled
        case .contentTooLarge: head.fields.contains(.retryAfter) ? .throttled : .never(.notRetryable)
        case .requestTimeout, .internalServerError, .badGateway, .gatewayTimeout: .ambiguous
        default:
            // A server error whose code is not known counts as a 500 (RFC 9110 §15).
            head.status.isServerError && !head.status.isRegistered ? .ambiguous : .never(.notRetryable)
        }
    }
}
