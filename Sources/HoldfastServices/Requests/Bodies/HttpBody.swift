// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

/// The content of a request, made when the request is built.
public struct HttpBody: Sendable {
    /// Content as it is sent.
    public struct Encoded: Sendable {
        /// The content's media type; nil: not stated.
        public var contentType: String?
        /// The bytes, or their source.
        public var content: RequestBody

        /// Content of a type.
        public init(contentType: String?, content: RequestBody) {
            self.contentType = contentType
            self.content = content
        }
    }

    /// Makes the content; called once for each call, and again by a ``CallLogger`` among the request hooks if the call fails or
    /// the content is not in memory.
    public let encode: @Sendable () throws -> Encoded

    /// A custom body.
    public init(_ encode: @escaping @Sendable () throws -> Encoded) {
        self.encode = encode
    }

    /// No content and no content type.
    public static let empty = HttpBody { Encoded(contentType: nil, content: .none) }
}
