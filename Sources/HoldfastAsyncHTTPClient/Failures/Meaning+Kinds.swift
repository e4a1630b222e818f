// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Holdfast

    extension ClientFailure.Meaning {
        static let badURL = Self(
            code: .badRequest,
            message: "The URL cannot be sent to; give it a host, and the scheme http, https, http+unix or https+unix.",
            proof: .notSent
        )
        static let badMessage = Self(
            code: .badRequest,
            message: "The request cannot be sent as it is; see the cause and mend its method or header fields.",
            proof: .notSent
        )
        static let badField = Self(
            code: .badRequest,
            message: "HTTP/2 does not allow one of the request's header fields; see the cause and leave it out."
        )
        static let badLength = Self(
            code: .badRequest,
            message: "The request body is longer or shorter than it was said to be; declare its true length, or none."
        )
        static let shutDown = Self(
            code: .unsupported,
            message: "The HTTPClient was shut down; make a new one, and shut it down after its last call.",
            proof: .notSent
        )
        static let resolve = Self(
            code: .resolve,
            message: "The host name could not be resolved; check its spelling and the machine's DNS.",
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
        static let handshake = Self(
            code: .tls,
            message: "No TLS connection could be made; check that the port speaks TLS and which versions it offers.",
            proof: .notSent
        )
        static let brokenTLS = Self(
            code: .tls,
            message: "TLS failed on an open connection; see the cause, and send again if the request is safe to repeat."
        )
        static let certificate = Self(
            code: .certificate,
            message: "The server's certificate was refused; renew it, or trust its issuer in the TLS configuration.",
            proof: .notSent
        )
        static let clientCertificate = Self(
            code: .certificate,
            message: "The server refused the client's certificate or misses one; give one in the TLS configuration."
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
        static let timeout = Self(
            code: .timeout,
            message: "The server sent no response head in time; allow more time, or find out why the server is slow."
        )
        static let connectionLost = Self(
            code: .connectionLost,
            message: "The connection broke before the response was complete; send again if the request is safe to "
                + "repeat."
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
            message: "The server's answer is not valid HTTP; check that the URL names an HTTP server."
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
