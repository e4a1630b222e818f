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

    extension HeaderFields {
        /// The lines of `HTTPFields`, in their order.
        ///
        /// Repeated lines stay separate, including a Cookie field that is split into several lines (RFC 9113 §8.2.3).
        /// Pseudo-header fields such as `:path` are not header fields and are left out. A value that is not UTF-8 is read as
        /// ISO 8859-1, as clients have always done (RFC 9110 §5.5).
        public init(_ fields: HTTPFields) {
            self.init()
            for field in fields {
                append(rawName: field.name.rawName, value: HeaderFields.text(of: field))
            }
        }

        private static func text(of field: HTTPField) -> String {
            field.withUnsafeBytesOfValue { bytes in
                String(validating: bytes, as: UTF8.self)
                    ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
            }
        }
    }

    extension HTTPFields {
        /// The most lines that `HTTPFields` can hold; it traps beyond that.
        private static let lineLimit = Int(UInt16.max) - 1

        /// The lines of `HeaderFields`, in their order; repeated ones stay separate.
        ///
        /// Control characters in a value become spaces, because `HTTPField` does not allow them. Lines beyond the first 65 534
        /// are left out, because `HTTPFields` cannot hold more.
        public init(_ fields: HeaderFields) {
            self.init()
            reserveCapacity(Swift.min(fields.count, HTTPFields.lineLimit))
            for line in fields.prefix(HTTPFields.lineLimit) {
                guard let name = HTTPField.Name(line.name.rawName) else { continue }
                append(HTTPField(name: name, value: line.value))
            }
        }
    }
#endif
