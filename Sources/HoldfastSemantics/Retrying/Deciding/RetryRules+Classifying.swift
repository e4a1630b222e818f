// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension RetryRules {
    /// What a failed attempt proves, by these rules.
    ///
    /// The outcome is looked at first, then whether the request can be sent again, then whether it may be: all methods
    /// where the server did not act; otherwise idempotent ones, those with an Idempotency-Key or the caller's word, and
    /// what the rules allow beyond. For a gateway only the method counts (RFC 9110 §9.2.2). A tunnel and an upgrade are
    /// committed with their first byte.
    ///
    /// `.never(.notIdempotent)` leaves open how far the request had come; the record of the attempt tells.
    public func classify(_ failed: FailedExchange) -> RetryClass {
        let proof = proof(of: failed)
        if case .never = proof { return proof }
        if failed.asksForTunnel, !failed.isUnsent { return .never(.committed) }
        guard failed.bodyIsReplayable || failed.isUnsent else { return .never(.notReplayable) }
        return permits(proof, failed) ? proof : .never(.notIdempotent)
    }

    /// What the outcome proves, the statuses that the rules name included.
    func proof(of failed: FailedExchange) -> RetryClass {
        let proof = Retryability.proof(of: failed.outcome, to: failed.fields)
        guard case .response(let head) = failed.outcome else { return proof }
        if finalStatuses.contains(head.status) { return .never(.notRetryable) }
        guard case .never = proof, retryableStatuses.contains(head.status) else { return proof }
        // The key was used with other content: a fault of the program, which no repetition cures.
        if head.status == .unprocessableContent, failed.fields.bearsIdempotencyKey { return proof }
        return .ambiguous
    }

    /// Whether a failure is one that these rules send again, whatever the method: where it follows a retry, that has not helped.
    package func counts(_ failed: FailedExchange) -> Bool {
        if case .never = proof(of: failed) { false } else { true }
    }

    /// Whether a request may be sent again while nobody knows how the first copy will end: what a hedge rests on.
    package func permitsCopy(of exchange: FailedExchange) -> Bool {
        exchange.bodyIsReplayable && !exchange.asksForTunnel && permits(.ambiguous, exchange)
    }

    /// Whether a request may be sent again after an outcome that proves this.
    func permits(_ proof: RetryClass, _ failed: FailedExchange) -> Bool {
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

    /// The resend at once that a failure of this class earns, whether or not the call has had it.
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

extension FailedExchange {
    /// Whether the server refused the request's Expect field, so that a resend must go without it (RFC 9110 §15.5.18).
    public var isRefusedExpectation: Bool {
        status == .expectationFailed && fields.contains(.expect)
    }

    /// Whether the connection is to blame, so that a resend should go over another one: it was closed before an answer, or the
    /// server says that it is the wrong one or gives it up.
    package var blamesConnection: Bool {
        switch outcome {
        case .response(let head): [.misdirectedRequest, .requestTimeout].contains(head.status)
        case .failure(let failure): failure.kind == .connectionLost || failure.kind == .refused
        }
    }

    /// The status, where there was a response.
    var status: StatusCode? {
        if case .response(let head) = outcome { head.status } else { nil }
    }

    /// Whether the server says that it did not do what was asked, and why the request is to blame (RFC 9110 §15.5).
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
