// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics

    /// Why bytes are no HTTP/1.1 message: the status that a server answers with, and a text for whoever sent them.
    package struct MessageFault: Error, Sendable, Hashable, CustomStringConvertible {
        /// What a server answers; of no meaning where the bytes are a response.
        package let status: StatusCode
        /// What is wrong, in one sentence that repeats nothing of the message.
        package let message: String

        /// A fault that a server answers with 400.
        package init(_ message: String) {
            self.init(400, message)
        }

        /// A fault that a server answers with this status.
        package init(_ status: Int, _ message: String) {
            self.status = StatusCode(status)
            self.message = message
        }

        /// The message.
        package var description: String { message }
    }
#endif
