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
    /// The class of an outcome for one request, by the default rules.
    ///
    /// Where the server may have acted, only idempotent requests are sent again; content that cannot be replayed is sent
    /// again only if none of it was read. ``RetryRules/classify(_:)`` knows the request's fields and other rules as well.
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
        RetryRules.default.classify(
            FailedExchange(
                outcome,
                method: method,
                bodyIsReplayable: bodyIsReplayable,
                declaredIdempotent: declaredIdempotent,
                receivedAt: .distantPast
            )
        )
    }

    /// What an outcome proves, whatever the method is and whoever may send it again.
    ///
    /// - Parameters:
    ///   - outcome: how the attempt ended.
    ///   - request: the request's fields as they were sent; they say what a 409, a 417 and a 422 speak of.
    static func proof(of outcome: AttemptOutcome, to request: HeaderFields) -> RetryClass {
        switch outcome {
        case .failure(let failure): proof(of: failure)
        case .response(let head): proof(of: head, to: request)
        }
    }

    private static func proof(of failure: AttemptFailure) -> RetryClass {
        switch failure.kind {
        case .cancelled: return .never(.cancelled)
        case .certificate, .badRequest, .tooLarge: return .never(.notRetryable)
        // The protocol says that the request was not and will not be processed, wherever its bytes went.
        case .refused: return .unprocessed
        default: break
        }
        if failure.progress == .notSent { return .unprocessed }
        if failure.kind == .connectionLost, failure.connectionReused, failure.progress < .headReceived {
            return .staleSocket
        }
        // From the head on as well: whoever asks was not handed the response, so nothing of it has reached the caller.
        return .ambiguous
    }

    private static func proof(of head: ResponseHead, to request: HeaderFields) -> RetryClass {
        switch head.status {
        case .misdirectedRequest, .tooEarly: .unprocessed
        case .tooManyRequests: .throttled
        // Without a word on when to come back it is a failure like a 500: a server that fails by chance is no slower to
        // recover for it, and waits of seconds would only hold the places in the budget (decision 0018).
        case .serviceUnavailable: head.fields.contains(.retryAfter) ? .throttled : .ambiguous
        case .contentTooLarge: head.fields.contains(.retryAfter) ? .throttled : .never(.notRetryable)
        // Another attempt with the same key is at work; draft-ietf-httpapi-idempotency-key-header asks to come back.
        case .conflict: request.bearsIdempotencyKey ? .throttled : .never(.notRetryable)
        case .expectationFailed: request.contains(.expect) ? .unprocessed : .never(.notRetryable)
        case .requestTimeout, .internalServerError, .badGateway, .gatewayTimeout: .ambiguous
        default:
            // A server error whose code is not known counts as a 500 (RFC 9110 §15).
            head.status.isServerError && !head.status.isRegistered ? .ambiguous : .never(.notRetryable)
        }
    }
}

extension HeaderFields {
    /// Whether there is an Idempotency-Key, and it says something.
    package var bearsIdempotencyKey: Bool {
        values(of: .idempotencyKey).contains { !$0.isEmpty }
    }
}
