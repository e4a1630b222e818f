// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Holdfast
    internal import HoldfastSemantics

    /// What was seen of an exchange when it failed.
    struct ExchangeTrace: Sendable {
        /// How far it had come, or may have come.
        var progress: TransportProgress
        /// Whether the client told, and proves by it, that the request was never given to a connection.
        var wasNeverPlaced = false
        /// Whether the connection had carried a request before.
        var connectionReused = false
        /// What the source of the request's content failed with.
        var uploadFailure: (any Error)?
    }

    /// What the client's errors mean: the one table from them to ``ServiceError``.
    enum ClientFailure {
        /// What an error means.
        struct Meaning: Sendable {
            let code: ServiceError.Code
            let message: String
            var proof = Proof.none
        }

        /// What an error proves beside what was seen.
        enum Proof: Sendable {
            case none
            /// Nothing was sent, or the protocol says that nothing was and will be processed.
            case notSent
            /// A response's head had come.
            case headReceived
        }

        /// The error for `error`, with the progress the exchange had made.
        static func serviceError(for error: any Error, _ trace: ExchangeTrace) -> ServiceError {
            if let error = error as? ServiceError, trace.uploadFailure == nil { return error }
            if let cause = trace.uploadFailure {
                return ServiceError(
                    .badRequest,
                    "The request body could not be read, so the request was broken off; see the cause and mend the "
                        + "body's source.",
                    cause: cause,
                    progress: trace.progress
                )
            }
            let meaning = meaning(of: error)
            let progress: TransportProgress =
                switch meaning.proof {
                case .notSent where trace.progress < .headReceived: .notSent
                case .headReceived: max(trace.progress, .headReceived)
                case .none, .notSent: trace.wasNeverPlaced ? .notSent : trace.progress
                }
            return ServiceError(
                meaning.code,
                meaning.message,
                cause: error,
                progress: progress,
                connectionReused: trace.connectionReused
            )
        }

        /// The end of an exchange whose deadline has passed.
        static func timeout(_ trace: ExchangeTrace) -> ServiceError {
            let meaning = Meaning.timeout
            return ServiceError(
                meaning.code,
                meaning.message,
                progress: trace.wasNeverPlaced ? .notSent : trace.progress,
                connectionReused: trace.connectionReused
            )
        }

        /// What an error means by itself.
        static func meaning(of error: any Error) -> Meaning {
            if let error = error as? HTTPClientError { return ofClient[error.shortDescription] ?? .unknown }
            return beneath(error) ?? .unknown
        }

        private static let ofClient: [String: Meaning] = {
            var table: [String: Meaning] = [:]
            for (meaning, errors) in groups {
                for error in errors { table[error.shortDescription] = meaning }
            }
            return table
        }()

        private static let groups: [(Meaning, [HTTPClientError])] = [
            (
                .badURL,
                [.invalidURL, .emptyHost, .missingSocketPath, .emptyScheme, .unsupportedScheme("")]
            ),
            (
                .badMessage,
                [
                    .traceRequestWithBody, .invalidHeaderFieldNames([]), .invalidHeaderFieldValues([]),
                    .identityCodingIncorrectlyPresent, .contentLengthMissing,
                ]
            ),
            (.badLength, [.bodyLengthMismatch, .writeAfterRequestSent]),
            (.shutDown, [.alreadyShutdown, .shutdownUnsupported]),
            (.connect, [.connectTimeout, .socksHandshakeTimeout, .httpProxyHandshakeTimeout, .invalidProxyResponse]),
            (.poolExhausted, [.getConnectionFromPoolTimeout]),
            (.handshake, [.tlsHandshakeTimeout, .serverOfferedUnsupportedApplicationProtocol("")]),
            (.proxyCredentials, [.proxyAuthenticationRequired]),
            (.silence, [.readTimeout]),
            (.stalled, [.writeTimeout]),
            (.timeout, [.deadlineExceeded]),
            (.connectionLost, [.remoteConnectionClosed, .uncleanShutdown, .requestStreamCancelled]),
            (.ended, [.cancelled]),
            (.redirects, [.redirectLimitReached, .redirectCycleDetected]),
        ]
    }
#endif
