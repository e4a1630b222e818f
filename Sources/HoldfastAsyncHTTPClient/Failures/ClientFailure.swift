// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Holdfast
    internal import HoldfastSemantics

    /// What is known about an exchange when it failed.
    struct ExchangeTrace: Sendable {
        /// How far it had come, or may have come.
        var progress: TransportProgress
        /// Whether the client's silence proves that the request was never given to a connection.
        var wasNeverPlaced = false
        /// Whether the connection had carried a request before.
        var connectionReused = false
        /// The error of the source of the request's content.
        var uploadFailure: (any Error)?
    }

    /// What the client's errors mean: the only table that maps them to ``ServiceError``.
    enum ClientFailure {
        /// The error for `error`, with the progress of the exchange.
        static func serviceError(for error: any Error, _ trace: ExchangeTrace) -> ServiceError {
            if let error = error as? ServiceError, trace.uploadFailure == nil { return error }
            if let cause = trace.uploadFailure {
                return FailureMeaning.unreadableBody.error(cause: cause, progress: trace.progress)
            }
            let meaning = meaning(of: error)
            let progress: TransportProgress =
                switch meaning.proof {
                case .notSent where trace.progress < .headReceived: .notSent
                case .headReceived: max(trace.progress, .headReceived)
                case .none, .notSent: trace.wasNeverPlaced ? .notSent : trace.progress
                }
            return meaning.error(cause: error, progress: progress, connectionReused: trace.connectionReused)
        }

        /// Whether an error says that the attempt's deadline has passed.
        static func isDeadline(_ error: any Error) -> Bool {
            (error as? ServiceError)?.code == .timeout || error as? HTTPClientError == .deadlineExceeded
        }

        /// The error of an exchange whose deadline has passed.
        static func timeout(_ trace: ExchangeTrace, in context: CallContext) -> ServiceError {
            context.attemptTimeout(
                progress: trace.wasNeverPlaced ? .notSent : trace.progress,
                connectionReused: trace.connectionReused
            )
        }

        /// What an error means by itself.
        static func meaning(of error: any Error) -> FailureMeaning {
            if let error = error as? HTTPClientError { return ofClient[error.shortDescription] ?? .unknown }
            return beneath(error) ?? .unknown
        }

        private static let ofClient: [String: FailureMeaning] = {
            var table: [String: FailureMeaning] = [:]
            for (meaning, errors) in groups {
                for error in errors { table[error.shortDescription] = meaning }
            }
            return table
        }()

        private static let groups: [(FailureMeaning, [HTTPClientError])] = [
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
            (.wrongLength, [.bodyLengthMismatch, .writeAfterRequestSent]),
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
