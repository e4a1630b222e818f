// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// Why a proxy responds itself: a status, a line for people, and fields.
    struct ProxyRefusal: Error, Sendable, Hashable {
        /// The status of the response.
        let status: StatusCode
        /// One line of plain text: what happened, and what to do.
        let text: String
        /// How many seconds to wait; nil if unknown.
        var retryAfter: Int?
        /// Every attempt to reach the origin.
        var attempts: [AttemptRecord] = []
        /// The error as the system reports it: for the operator, never for the client.
        var cause: String?
        /// Whether the server itself reports what was wrong with the request.
        private(set) var isToldByServer = false

        /// Whether the client cancelled the request, so that nothing failed and nobody reads this response.
        var clientHasLeft: Bool { status == .clientHasLeft }

        init(_ status: StatusCode, text: String, retryAfter: Int? = nil) {
            self.status = status
            self.text = text
            self.retryAfter = retryAfter
        }

        /// The response to a client for a failed call: 502, 503 or 504, and never details of the origin (RFC 9110
        /// §15.6).
        init(_ error: any Error) {
            if error is CancellationError {
                self.init(.clientHasLeft, text: "the client left before the response")
                return
            }
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
            let contentFault = error.code == .badRequest ? ProxyRefusal.fault(in: error) : nil
            if let contentFault {
                // The client's own content is at fault, and the server refuses it with this.
                (status, text) = (contentFault.status, contentFault.message)
            } else if let fault = error.cause as? MessageFault, fault.isOverLimit {
                text = "the head of the origin's response is larger than this proxy allows: \(fault.message)"
            }
            let seconds = error.retryAfter.map { max(1, Int(clamping: ($0 + .milliseconds(999)).components.seconds)) }
            self.init(
                status,
                text: text + " [\(error.code)]",
                retryAfter: status == .serviceUnavailable ? min(seconds ?? 1, 86_400) : nil
            )
            isToldByServer = contentFault != nil
            attempts = error.attempts
            cause = error.message + (error.cause.map { " (\(OriginFailure.text(of: $0)))" } ?? "")
        }

        /// What was wrong with the content of the request, however many errors are wrapped around it.
        private static func fault(in error: ServiceError) -> MessageFault? {
            var error = error
            while let cause = error.cause as? ServiceError { error = cause }
            return error.cause as? MessageFault
        }

        private static let answers: [ServiceError.Code: (StatusCode, String)] = [
            .badRequest: (.badRequest, "the request cannot be sent to the origin"),
            .resolve: (.badGateway, "the name of the origin could not be resolved"),
            .connect: (.badGateway, "no connection to the origin could be made"),
            .connectionLost: (.badGateway, "the origin closed the connection before it responded"),
            .protocolError: (.badGateway, "the origin's response is not HTTP/1.1"),
            .tls: (.badGateway, "no secure connection to the origin could be made"),
            .certificate: (.badGateway, "the certificate of the origin is not trusted"),
            .offline: (.badGateway, "this machine has no network"),
            .bodyTooLarge: (.badGateway, "the origin's response is larger than a limit allows"),
            .timeout: (.gatewayTimeout, "the origin did not respond in time"),
            .deadlineExceeded: (.gatewayTimeout, "the origin did not respond in time"),
            .resourceUnavailable: (
                .gatewayTimeout, "no usable response is stored, and the request does not allow asking the origin"
            ),
            .throttled: (.serviceUnavailable, "the origin asked for a pause"),
            .circuitOpen: (.serviceUnavailable, "the origin fails too often, so nothing is sent to it for a while"),
            .tooManyInFlight: (.serviceUnavailable, "there are too many current requests to the origin"),
            .unsupported: (.notImplemented, "this proxy cannot send such a request"),
        ]
    }

    extension StatusCode {
        /// What logs say, by nginx's convention, where the client left before the head of a response; it is never sent.
        fileprivate static let clientHasLeft: StatusCode = 499
    }
#endif
