// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What an error from below a transport means: the code and message of the ``ServiceError``, and what the error proves.
package struct FailureMeaning: Sendable {
    /// What an error proves, in addition to what was seen of the exchange.
    package enum Proof: Sendable {
        case none
        /// Nothing was sent, or the protocol says that nothing was or will be processed.
        case notSent
        /// A response's head had arrived.
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

/// Failures that every HTTP client can meet, whatever its transport.
extension FailureMeaning {
    package static let resolve = Self(
        code: .resolve,
        message: "The host name could not be resolved. Check its spelling and the machine's DNS settings.",
        proof: .notSent
    )
    package static let handshake = Self(
        code: .tls,
        message:
            "The TLS handshake failed. Check that the server speaks TLS on this port, and which versions it supports.",
        proof: .notSent
    )
    package static let brokenTLS = Self(
        code: .tls,
        message: "TLS failed on an open connection; see the cause. Send the request again if it is safe to repeat."
    )
    package static let certificate = Self(
        code: .certificate,
        message: "The server's certificate is not trusted. Renew it, or trust its issuer in the TLS configuration.",
        proof: .notSent
    )
    package static let clientCertificate = Self(
        code: .certificate,
        message: "The server rejected the client's certificate, or requires one. Set one in the TLS configuration."
    )
    package static let timeout = Self(
        code: .timeout,
        message: "The server did not respond in time. Allow more time, or find out why the server is slow."
    )
    package static let connectionLost = Self(
        code: .connectionLost,
        message:
            "The connection was lost before the response was complete. Send the request again if it is safe to repeat."
    )
    /// The connection ended before the body did.
    ///
    /// - Parameters:
    ///   - received: how many bytes of the body had arrived.
    ///   - length: its length; nil if the head gave none.
    package static func brokenBody(received: Int, of length: Int?) -> FailureMeaning {
        let bytes = length.map { "of \($0) bytes" } ?? (received == 1 ? "byte" : "bytes")
        return FailureMeaning(
            code: .connectionLost,
            message: "The connection was closed before the response body was complete: \(received) \(bytes) had "
                + "arrived. Send the request again if it is safe to repeat."
        )
    }
    package static let wrongLength = Self(
        code: .badRequest,
        message: "The request body is not as long as declared. Declare its true length, or none."
    )
    package static let unreadableBody = Self(
        code: .badRequest,
        message: "The request body could not be read, so the request was aborted; see the cause, and check where "
            + "the body comes from."
    )
}
