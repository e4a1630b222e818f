// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Foundation
    public import HTTPTypes
    public import Holdfast
    public import HoldfastSemantics

    extension HTTPResponse {
        /// The head of a response: its status, without a reason phrase, and its field lines in order.
        ///
        /// - Throws: `ServiceError` `.protocolError` for a status outside 0 to 999, which `HTTPResponse` cannot hold.
        public init(_ head: ResponseHead) throws(ServiceError) {
            guard (0...999).contains(head.status.rawValue) else {
                throw ServiceError(
                    .protocolError,
                    "The status \(head.status) is no number of three digits, so the peer does not speak HTTP; ask another one.",
                    progress: .headReceived
                )
            }
            self.init(status: Status(code: head.status.rawValue), headerFields: HTTPFields(head.fields))
        }

        /// The head of a response; as ``init(_:)`` of its `head` otherwise.
        ///
        /// Where the transport has undone a content coding, Content-Encoding and Content-Length still stand as they came, as with
        /// URLSession.
        public init(_ response: Response) throws(ServiceError) {
            try self.init(response.head)
        }
    }

    extension Response {
        /// A response as hooks and transports hand it up.
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
