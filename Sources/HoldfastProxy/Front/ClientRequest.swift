// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import Holdfast
    package import HoldfastSemantics
    package import NIOCore

    /// A request as a client sent it.
    package struct ClientRequest: Sendable {
        /// The method: any token.
        package var method: RequestMethod
        /// What is asked for, as it arrived.
        package var target: RequestTarget
        /// The version of the message.
        package var version: HTTPVersion
        /// The field lines, those of the connection included.
        package var fields: HeaderFields
        /// The content: none, bytes where it is small and came along with the head, else a stream that can be read once.
        ///
        /// The stream pulls from the connection, so its reader sets the client's pace. It ends with an error when the client goes
        /// away, sends nothing for too long, or breaks the framing; and with the answer, which comes after it at the latest.
        package var body: RequestBody
        /// Where the client is; nil where nobody knows.
        package var remoteAddress: SocketAddress?

        private let interim: (@Sendable (ResponseHead) -> Void)?

        /// A request of these parts.
        ///
        /// - Parameter interim: what sends an interim response; nil to drop them.
        package init(
            method: RequestMethod,
            target: RequestTarget,
            version: HTTPVersion = .http11,
            fields: HeaderFields,
            body: RequestBody = .none,
            remoteAddress: SocketAddress? = nil,
            interim: (@Sendable (ResponseHead) -> Void)? = nil
        ) {
            self.method = method
            self.target = target
            self.version = version
            self.fields = fields
            self.body = body
            self.remoteAddress = remoteAddress
            self.interim = interim
        }

        /// Writes an interim response at once, in order, before the final one (RFC 9110 §15.2); from any thread.
        ///
        /// 100 and 101 are not written: the server sends 100 itself. Nothing goes to HTTP/1.0, nothing after the final response
        /// began, nothing past the 32nd, and nothing while the client takes no more bytes.
        package func sendInterim(_ head: ResponseHead) {
            interim?(head)
        }
    }

    /// What answers a server's requests.
    package protocol ClientHandler: Sendable {
        /// Answers one request.
        ///
        /// Runs on the connection's event loop, so it must not block, and is called for one request of a connection at a time. The
        /// task is cancelled when the client closes the connection or its sending side of it, when a draining server's time is up,
        /// and when the server is closed.
        func answer(_ request: ClientRequest) async -> Response
    }
#endif
