// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// Why a proxy answers a request itself: a status, a line for people, and fields.
    struct ProxyRefusal: Error, Sendable, Hashable {
        /// The status of the answer.
        let status: StatusCode
        /// One line of plain text: what happened, and what to do.
        let text: String
        /// How many seconds to stay away; nil where nobody knows.
        var retryAfter: Int?
        /// Every time the origin was asked.
        var attempts: [AttemptRecord] = []
        /// What went wrong as the system names it: for the operator, never for the client.
        var cause: String?

        init(_ status: StatusCode, text: String, retryAfter: Int? = nil) {
            self.status = status
            self.text = text
            self.retryAfter = retryAfter
        }

        /// What a client is told of a call that failed: 502, 503 or 504, and never anything of the origin's own
        /// (RFC 9110 §15.6).
        init(_ error: any Error) {
            guard let error = error as? ServiceError else {
                self.init(.badGateway, text: "the exchange with the origin failed")
                cause = "\(error)"
                return
            }
            if let refusal = error.cause as? ProxyRefusal {
                self = refusal
                return
            }
            var (status, text) =
                ProxyRefusal.answers[error.code] ?? (.badGateway, "the exchange with the origin failed")
            if let fault = error.cause as? MessageFault, fault.isOverLimit {
                text = "the head of the origin's answer is larger than this proxy allows: \(fault.message)"
            }
            let seconds = error.retryAfter.map { max(1, Int(clamping: ($0 + .milliseconds(999)).components.seconds)) }
            self.init(
                status,
                text: text + " [\(error.code)]",
                retryAfter: status == .serviceUnavailable ? min(seconds ?? 1, 86_400) : nil
            )
            attempts = error.attempts
            cause = error.message + (error.cause.map { " (\(OriginFailure.text(of: $0)))" } ?? "")
        }

        private static let answers: [ServiceError.Code: (StatusCode, String)] = [
            .badRequest: (.badRequest, "the request cannot be sent to the origin"),
            .resolve: (.badGateway, "the name of the origin could not be resolved"),
            .connect: (.badGateway, "no connection to the origin could be made"),
            .connectionLost: (.badGateway, "the origin closed the connection before it had answered"),
            .protocolError: (.badGateway, "the origin answered what is not HTTP/1.1"),
            .tls: (.badGateway, "no secure connection to the origin could be made"),
            .certificate: (.badGateway, "the certificate of the origin is not to be trusted"),
            .offline: (.badGateway, "this machine has no network"),
            .bodyTooLarge: (.badGateway, "the answer of the origin is larger than a limit allows"),
            .timeout: (.gatewayTimeout, "the origin did not answer in time"),
            .deadlineExceeded: (.gatewayTimeout, "the origin did not answer in time"),
            .resourceUnavailable: (
                .gatewayTimeout, "nothing usable is stored, and the request forbids to ask the origin"
            ),
            .throttled: (.serviceUnavailable, "the origin asked to be left alone for a while"),
            .circuitOpen: (.serviceUnavailable, "the origin fails too often and is left alone for a while"),
            .tooManyInFlight: (.serviceUnavailable, "too many requests to the origin are under way"),
            .unsupported: (.notImplemented, "this proxy cannot send such a request"),
        ]
    }
#endif
