// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

/// The content of a request, made when the request is built.
public struct HttpBody: Sendable {
    /// Content as it is sent.
    public struct Encoded: Sendable {
        /// What the content is; nil: nothing is said.
        public var contentType: String?
        /// The bytes, or where they come from.
        public var content: RequestBody

        /// Content of a type.
        public init(contentType: String?, content: RequestBody) {
            self.contentType = contentType
            self.content = content
        }
    }

    /// Makes the content; called once for each call, and again by a ``CallLogger`` among the request hooks where the call fails or
    /// the content does not lie in memory.
    public let encode: @Sendable () throws -> Encoded

    /// A body of one's own.
    public init(_ encode: @escaping @Sendable () throws -> Encoded) {
        self.encode = encode
    }

    /// No content, and no word about it.
    public static let empty = HttpBody { Encoded(contentType: nil, content: .none) }
}
