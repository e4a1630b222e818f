// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast
    public import HoldfastSemantics

    /// One request and how it was answered, for logs; told when the head of the answer is there.
    public struct ProxyRecord: Sendable {
        /// The method as it arrived.
        public let method: RequestMethod
        /// The target as it arrived; it may bear credentials, and quotation marks.
        public let target: String
        /// The version of HTTP that the client speaks, such as `1.1`.
        public let version: String
        /// The address of the client, without its port; nil where it has none.
        public let clientAddress: String?
        /// The User-Agent and the Referer of the request.
        public let userAgent: String?
        public let referer: String?
        /// The status of the answer.
        public let status: StatusCode
        /// The length of its body where it is known by then.
        public let bodyLength: Int?
        /// What the cache did; nil where none was asked.
        public let decision: CacheDecision?
        /// Where the answer came from.
        public let source: ResponseSource
        /// How many times the origin was asked.
        public let attempts: Int
        /// When the request began to be answered, and how long it took up to the head of the answer.
        public let start: Timestamp
        public let duration: Duration
    }
#endif
