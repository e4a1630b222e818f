// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Holdfast

    /// What this client can meet beside what every one can.
    extension FailureMeaning {
        static let badURL = Self(
            code: .badRequest,
            message: "The URL cannot be sent to; give it a host, and the scheme http, https, http+unix or https+unix.",
            proof: .notSent
        )
        static let badMessage = Self(
            code: .badRequest,
            message: "The request is invalid; see the cause, and correct its method or header fields.",
            proof: .notSent
        )
        static let badField = Self(
            code: .badRequest,
            message: "HTTP/2 does not allow one of the request's header fields; see the cause and leave it out."
        )
        static let shutDown = Self(
            code: .unsupported,
            message: "The HTTPClient was shut down; make a new one, and shut it down after its last call.",
            proof: .notSent
        )
        static let connect = Self(
            code: .connect,
            message: "No connection could be made; check host, port and proxy, and that the server runs.",
            proof: .notSent
        )
        static let poolExhausted = Self(
            code: .connect,
            message: "No connection became free in time; allow more connections for a host, or send less at once.",
            proof: .notSent
        )
        static let proxyCredentials = Self(
            code: .authenticationRequired,
            message: "The proxy asks for credentials; give them in the client's proxy configuration.",
            proof: .notSent
        )
        static let silence = Self(
            code: .timeout,
            message: "The server was silent for too long; allow a longer read timeout, or find out why it is slow."
        )
        static let stalled = Self(
            code: .timeout,
            message: "The server took no bytes for too long; allow a longer write timeout, or find out why it is slow."
        )
        static let refused = Self(
            code: .connectionLost,
            message: "The server took this request off its connection without processing it; it is safe to send again.",
            proof: .notSent
        )
        static let ended = Self(
            code: .connectionLost,
            message: "The client ended the exchange, since its connection or the client itself is being shut down."
        )
        static let notHTTP = Self(
            code: .protocolError,
            message: "The server's response is not valid HTTP. Check that the URL leads to an HTTP server."
        )
        static let undecodable = Self(
            code: .decodingFailed,
            message: "The response's content coding could not be undone; ask for none by `Accept-Encoding: identity`, "
                + "or raise the client's decompression limit.",
            proof: .headReceived
        )
        static let redirects = Self(
            code: .tooManyRedirects,
            message: "The client followed redirects itself and they did not end; configure it with `.disallow`.",
            proof: .headReceived
        )
        static let unknown = Self(
            code: .other,
            message: "AsyncHTTPClient failed for a reason that is not known here; see the cause."
        )
    }
#endif
