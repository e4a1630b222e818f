// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Foundation
    public import HTTPTypes
    public import Holdfast
    public import HoldfastSemantics

    extension HTTPResponse {
        /// Creates the head of a response: its status, without a reason phrase, and its field lines in order.
        ///
        /// - Throws: `ServiceError` `.protocolError` for a status outside 0 to 999, which `HTTPResponse` cannot hold.
        public init(_ head: ResponseHead) throws(ServiceError) {
            guard (0...999).contains(head.status.rawValue) else {
                throw ServiceError(
                    .protocolError,
                    "The status \(head.status) is not a three-digit number, so the peer does not speak HTTP. Check the URL.",
                    progress: .headReceived
                )
            }
            self.init(status: Status(code: head.status.rawValue), headerFields: HTTPFields(head.fields))
        }

        /// Creates the head of a response; otherwise like ``init(_:)`` with its `head`.
        ///
        /// If the transport decoded the content, Content-Encoding and Content-Length still have their received values, as with
        /// URLSession.
        public init(_ response: Response) throws(ServiceError) {
            try self.init(response.head)
        }
    }

    extension Response {
        /// Creates a response as hooks and transports return it.
        ///
        /// - Parameters:
        ///   - response: status and fields; the reason phrase is left out.
        ///   - body: empty by default.
        ///   - url: the URL that answered.
        public init(_ response: HTTPResponse, body: ResponseBody = ResponseBody(), url: URL? = nil) {
            self.init(
                status: StatusCode(response.status.code),
                fields: HeaderFields(response.headerFields),
                body: body,
                url: url
            )
        }
    }
#endif
