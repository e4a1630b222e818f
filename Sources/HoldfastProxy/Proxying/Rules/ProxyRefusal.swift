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

        init(_ status: StatusCode, _ text: String, retryAfter: Int? = nil) {
            self.status = status
            self.text = text
            self.retryAfter = retryAfter
        }
    }
#endif
