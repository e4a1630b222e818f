// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// The answers that a server makes itself: a status and one line of text.
    enum Refusal {
        /// The answer to bytes that are no request.
        static func response(to fault: MessageFault) -> Response {
            response(fault.status, fault.message)
        }

        /// The answer to a connection too many (RFC 9110 §10.2.3).
        static func tooManyConnections(retryAfter: Int) -> Response {
            var response = response(503, "Too many connections are open; come back in a while.")
            response.fields.append(.retryAfter, String(retryAfter))
            return response
        }

        static let headTimeout = MessageFault(408, "The request's head took too long.")
        static let bodyStall = MessageFault(408, "The request's content took too long.")
        static let unknownExpectation = MessageFault(417, "Only 100-continue can be expected.")

        static func response(_ status: StatusCode, _ text: String) -> Response {
            Response(
                status: status,
                fields: [
                    .date: HTTPDate(SystemClock().timestamp).description,
                    .contentType: "text/plain; charset=utf-8",
                ],
                body: ResponseBody(ByteChunk(copying: (text + "\n").utf8)),
                source: .synthesized
            )
        }
    }
#endif
