// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What an error from below a transport means: what the ``ServiceError`` made of it says, and what the error proves.
package struct FailureMeaning: Sendable {
    /// What an error proves beside what was seen of the exchange.
    package enum Proof: Sendable {
        case none
        /// Nothing was sent, or the protocol says that nothing was and will be processed.
        case notSent
        /// A response's head had come.
        case headReceived
    }

    package let code: ServiceError.Code
    /// What happened, and what to do about it.
    package let message: String
    package let proof: Proof

    package init(code: ServiceError.Code, message: String, proof: Proof = .none) {
        self.code = code
        self.message = message
        self.proof = proof
    }

    /// The error, with the progress that the transport saw.
    package func error(
        cause: (any Error)? = nil,
        progress: TransportProgress,
        connectionReused: Bool = false
    ) -> ServiceError {
        ServiceError(code, message, cause: cause, progress: progress, connectionReused: connectionReused)
    }
}

/// What every client of HTTP can meet, whatever carries it.
extension FailureMeaning {
    package static let resolve = Self(
        code: .resolve,
        message: "The host name could not be resolved; check its spelling and the machine's DNS.",
        proof: .notSent
    )
    package static let handshake = Self(
        code: .tls,
        message: "No TLS connection could be made; check that the port speaks TLS and which versions it offers.",
        proof: .notSent
    )
    package static let brokenTLS = Self(
        code: .tls,
        message: "TLS failed on an open connection; see the cause, and send again if the request is safe to repeat."
    )
    package static let certificate = Self(
        code: .certificate,
        message: "The server's certificate was refused; renew it, or trust its issuer in the TLS configuration.",
        proof: .notSent
    )
    package static let clientCertificate = Self(
        code: .certificate,
        message: "The server refused the client's certificate or misses one; give one in the TLS configuration."
    )
    package static let timeout = Self(
        code: .timeout,
        message: "The server sent no response head in time; allow more time, or find out why the server is slow."
    )
    package static let connectionLost = Self(
        code: .connectionLost,
        message: "The connection broke before the response was complete; send again if the request is safe to repeat."
    )
    package static let wrongLength = Self(
        code: .badRequest,
        message: "The request body is longer or shorter than it was said to be; declare its true length, or none."
    )
    package static let unreadableBody = Self(
        code: .badRequest,
        message: "The request body could not be read, so the request was broken off; see the cause and mend the body's "
            + "source."
    )
}
