// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Holdfast

    /// What this client can meet in addition to the failures that all clients share.
    extension FailureMeaning {
        static let badURL = Self(
            code: .badRequest,
            message: "The URL cannot be used. It needs a host, and the scheme http, https, http+unix or https+unix.",
            proof: .notSent
        )
        static let badMessage = Self(
            code: .badRequest,
            message: "The request is invalid; see the cause, and correct its method or header fields.",
            proof: .notSent
        )
        static let badField = Self(
            code: .badRequest,
            message: "HTTP/2 does not allow one of the request's header fields; see the cause, and leave the field out."
        )
        static let shutDown = Self(
            code: .unsupported,
            message: "The HTTPClient was shut down; create a new one, and shut it down after its last call.",
            proof: .notSent
        )
        static let connect = Self(
            code: .connect,
            message: "No connection could be made. Check host, port and proxy, and that the server is running.",
            proof: .notSent
        )
        static let poolExhausted = Self(
            code: .connect,
            message:
                "No connection became free in time; allow more connections per host, or send fewer requests at once.",
            proof: .notSent
        )
        static let proxyCredentials = Self(
            code: .authenticationRequired,
            message: "The proxy requires credentials. Set them in the client's proxy configuration.",
            proof: .notSent
        )
        static let silence = Self(
            code: .timeout,
            message: "The server sent nothing for too long. Allow a longer read timeout, or find out why it is slow."
        )
        static let stalled = Self(
            code: .timeout,
            message:
                "The server accepted no bytes for too long. Allow a longer write timeout, or find out why it is slow."
        )
        static let refused = Self(
            code: .connectionLost,
            message: "The server dropped this request without processing it. It is safe to send it again.",
            proof: .notSent
        )
        static let ended = Self(
            code: .connectionLost,
            message: "The client ended the exchange because its connection, or the client itself, is being shut down."
        )
        static let notHTTP = Self(
            code: .protocolError,
            message: "The server's response is not valid HTTP. Check that the URL leads to an HTTP server."
        )
        static let undecodable = Self(
            code: .decodingFailed,
            message: "The response's content could not be decoded. Ask for none by `Accept-Encoding: identity`, "
                + "or raise the client's decompression limit.",
            proof: .headReceived
        )
        static let redirects = Self(
            code: .tooManyRedirects,
            message: "The client followed redirects itself, and there were too many. Configure it with `.disallow`.",
            proof: .headReceived
        )
        static let unknown = Self(
            code: .other,
            message: "AsyncHTTPClient failed for an unknown reason; see the cause."
        )
    }
#endif
