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
    /// The server asks for fewer requests.
    case throttled
    /// Do not send it again, for this reason.
    case never(StopReason)
}

/// Sorts outcomes into retry classes; ``RetryRules/classify(_:)`` also considers the request and the rules.
enum Retryability {
    /// What an outcome proves, whatever the method, and no matter who may send it again.
    ///
    /// - Parameters:
    ///   - outcome: how the attempt ended.
    ///   - request: the request's fields as they were sent; they determine what a 409, a 417 and a 422 are about.
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
        // The protocol says that the request was not processed and will not be, wherever its bytes went.
        case .refused: return .unprocessed
        default: break
        }
        if failure.progress == .notSent { return .unprocessed }
        if failure.kind == .connectionLost, failure.connectionReused, failure.progress < .headReceived {
            return .staleSocket
        }
        // Even after the head: the asking layer was not given the response, so nothing of it has reached the caller.
        return .ambiguous
    }

    private static func proof(of head: ResponseHead, to request: HeaderFields) -> RetryClass {
        switch head.status {
        case .misdirectedRequest, .tooEarly: .unprocessed
        case .tooManyRequests: .throttled
        // Without a time to come back, it is a failure like a 500: a server that fails by chance does not recover more slowly, and
        // waits of seconds would only occupy places in the budget (decision 0018).
        case .serviceUnavailable: head.fields.contains(.retryAfter) ? .throttled : .ambiguous
        case .contentTooLarge: head.fields.contains(.retryAfter) ? .throttled : .never(.notRetryable)
        // Another attempt with the same key is being processed; draft-ietf-httpapi-idempotency-key-header asks to come back.
        case .conflict: request.bearsIdempotencyKey ? .throttled : .never(.notRetryable)
        case .expectationFailed: request.contains(.expect) ? .unprocessed : .never(.notRetryable)
        case .requestTimeout, .internalServerError, .badGateway, .gatewayTimeout: .ambiguous
        // Registered, but not in the list, by which a cache would say that it understands it.
        case 510: .never(.notRetryable)
        default:
            // A server error with an unknown code counts as a 500 (RFC 9110 §15).
            head.status.isServerError && !head.status.isRegistered ? .ambiguous : .never(.notRetryable)
        }
    }
}

extension HeaderFields {
    /// Whether there is an Idempotency-Key that is not empty.
    package var bearsIdempotencyKey: Bool {
        values(of: .idempotencyKey).contains { !$0.isEmpty }
    }
}

/// A failed attempt, as the rules for retrying see it.
public struct FailedExchange: Sendable, Hashable {
    /// How the attempt ended.
    public var outcome: AttemptOutcome
    /// The request's method.
    public var method: RequestMethod
    /// The request's fields as they were sent.
    public var fields: HeaderFields
    /// The number of the attempt that ended; the first is 1.
    public var attempt: Int
    /// Whether the content can be sent from its start again; true for no content.
    public var bodyIsReplayable: Bool
    /// Whether the caller declared the request idempotent; nil leaves it to the method and the Idempotency-Key.
    public var declaredIdempotent: Bool?
    /// What remains of the call's time; nil for no limit.
    public var timeLeft: Duration?
    /// When the outcome arrived.
    public var receivedAt: Timestamp
    /// Whether the layer below has already retried and given up.
    public var wasRetriedBelow = false

    /// A failed attempt; omitted values have harmless defaults.
    public init(
        _ outcome: AttemptOutcome,
        method: RequestMethod,
        fields: HeaderFields = HeaderFields(),
        attempt: Int = 1,
        bodyIsReplayable: Bool = true,
        declaredIdempotent: Bool? = nil,
        timeLeft: Duration? = nil,
        receivedAt: Timestamp
    ) {
        self.outcome = outcome
        self.method = method
        self.fields = fields
        self.attempt = attempt
        self.bodyIsReplayable = bodyIsReplayable
        self.declaredIdempotent = declaredIdempotent
        self.timeLeft = timeLeft
        self.receivedAt = receivedAt
    }

    /// Whether the server refused the request's Expect field, so that a resend must go without it (RFC 9110 §15.5.18).
    package var isRefusedExpectation: Bool {
        status == .expectationFailed && fields.contains(.expect)
    }

    /// Whether the connection is to blame, so that a resend should use another one: it was closed before an answer, or the server
    /// says that it is the wrong one or closes it.
    package var blamesConnection: Bool {
        switch outcome {
        case .response(let head): [.misdirectedRequest, .requestTimeout].contains(head.status)
        case .failure(let failure): failure.kind == .connectionLost || failure.kind == .refused
        }
    }

    /// The status, if there was a response.
    var status: StatusCode? {
        if case .response(let head) = outcome { head.status } else { nil }
    }

    /// Whether the server says that it did not act because of the request itself (RFC 9110 §15.5).
    var wasRefused: Bool { status?.isClientError ?? false }

    /// Whether no byte of the request left this machine.
    var isUnsent: Bool {
        if case .failure(let failure) = outcome { failure.progress == .notSent } else { false }
    }

    /// Whether the request asks for a connection of its own: CONNECT, a WebSocket, any other upgrade.
    var asksForTunnel: Bool {
        method == .connect || fields.contains(.upgrade)
    }
}

extension RetryRules {
    /// What a failed attempt proves, by these rules.
    ///
    /// The outcome is considered first, then whether the request can be sent again, then whether it may be: any method if the
    /// server did not act; otherwise idempotent ones, those with an Idempotency-Key or declared idempotent by the caller, and what
    /// the rules allow in addition. For a gateway only the method counts (RFC 9110 §9.2.2). A tunnel and an upgrade are committed
    /// with their first byte.
    ///
    /// `.never(.notIdempotent)` does not say how far the request got; the record of the attempt does.
    public func classify(_ failed: FailedExchange) -> RetryClass {
        let proof = proof(of: failed)
        if case .never = proof { return proof }
        if failed.asksForTunnel, !failed.isUnsent { return .never(.committed) }
        guard failed.bodyIsReplayable || failed.isUnsent else { return .never(.notReplayable) }
        return permits(proof, for: failed) ? proof : .never(.notIdempotent)
    }

    /// What the outcome proves, including the statuses that the rules name.
    func proof(of failed: FailedExchange) -> RetryClass {
        let proof = Retryability.proof(of: failed.outcome, to: failed.fields)
        guard case .response(let head) = failed.outcome else { return proof }
        if finalStatuses.contains(head.status) { return .never(.notRetryable) }
        guard case .never = proof, retryableStatuses.contains(head.status) else { return proof }
        // The key was used with other content: a bug in the program, which repeating does not fix.
        if head.status == .unprocessableContent, failed.fields.bearsIdempotencyKey { return proof }
        return .ambiguous
    }

    /// Whether these rules retry such a failure, whatever the method: after a retry, this means that the retry did not help.
    package func counts(_ failed: FailedExchange) -> Bool {
        if case .never = proof(of: failed) { false } else { true }
    }

    /// Whether a request may be sent again before the outcome of the first copy is known, as hedging does.
    package func permitsCopy(of exchange: FailedExchange) -> Bool {
        exchange.bodyIsReplayable && !exchange.asksForTunnel && permits(.ambiguous, for: exchange)
    }

    /// Whether a request may be sent again after an outcome that proves this.
    func permits(_ proof: RetryClass, for failed: FailedExchange) -> Bool {
        if proof == .unprocessed { return true }
        let isRepeatable = repeatableMethods?.contains(failed.method) ?? failed.method.isIdempotent
        if isGateway { return isRepeatable && failed.method.isIdempotent && failed.declaredIdempotent != false }
        if failed.declaredIdempotent ?? (isRepeatable || failed.fields.bearsIdempotencyKey) { return true }
        return switch proof {
        case .staleSocket: retriesUnsafeOnStaleSocket
        case .throttled: retriesUnsafeWhenThrottled && failed.status != .conflict
        default: false
        }
    }

    /// The immediate resend for a failure of this class, whether or not the call has already had it.
    package func freeResend(after failed: FailedExchange, _ retryClass: RetryClass) -> FreeResend? {
        switch retryClass {
        case .staleSocket:
            return .staleSocket
        case .unprocessed:
            switch failed.outcome {
            case .failure(let failure): return failure.kind == .refused ? .refused : nil
            case .response(let head):
                switch head.status {
                case .misdirectedRequest: return .misdirected
                case .tooEarly: return .tooEarly
                case .expectationFailed: return .expectation
                default: return nil
                }
            }
        default:
            return nil
        }
    }
}
