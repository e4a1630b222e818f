// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore
    internal import NIOPosix
    internal import NIOSSL

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Musl)
        private import Musl
    #else
        private import Glibc
    #endif

    /// What the errors beneath mean: the one table from them to ``ServiceError``.
    enum OriginFailure {
        private typealias Meaning = (code: ServiceError.Code, message: String)

        /// The error for what ended an exchange.
        static func serviceError(
            for error: any Error,
            progress: TransportProgress,
            connectionReused: Bool
        ) -> any Error {
            switch error {
            case is CancellationError, is ServiceError: return error
            case let fault as MessageFault:
                return ServiceError(
                    .protocolError,
                    "The server's answer is not valid HTTP/1.1: \(fault.message)",
                    progress: progress,
                    connectionReused: connectionReused
                )
            case let failure as Upload.Failure:
                let (code, message, cause) = meaning(of: failure)
                return ServiceError(
                    code,
                    message,
                    cause: cause,
                    progress: progress,
                    connectionReused: connectionReused
                )
            default:
                let fault = error as? ChannelFault
                let (code, message) = fault.map { meaning(of: $0) } ?? meaning(of: error)
                return ServiceError(
                    code,
                    message,
                    cause: fault?.cause ?? (fault == nil ? error : nil),
                    progress: progress,
                    connectionReused: connectionReused
                )
            }
        }

        /// The error for a connection that was not had.
        static func opening(_ error: any Error) -> any Error {
            switch error {
            case is CancellationError, is ServiceError: return error
            case OriginPool.Refusal.shutDown:
                return ServiceError(
                    .unsupported,
                    "The transport was shut down; make a new one, and shut it down after its last call.",
                    progress: .notSent
                )
            case OriginPool.Refusal.lineIsFull:
                return ServiceError(
                    .tooManyInFlight,
                    "Too many requests wait for a connection; allow more connections, or send less at once.",
                    progress: .notSent
                )
            default:
                let (code, message) = opening(error)
                return ServiceError(code, message, cause: error, progress: .notSent)
            }
        }

        /// The end of an attempt whose deadline has passed.
        static func timeout(progress: TransportProgress, connectionReused: Bool) -> ServiceError {
            ServiceError(
                .timeout,
                "The server sent no response head in time; allow more time, or find out why the server is slow.",
                progress: progress,
                connectionReused: connectionReused
            )
        }

        private static func meaning(
            of failure: Upload.Failure
        ) -> (code: ServiceError.Code, message: String, cause: (any Error)?) {
            switch failure {
            case .source(let cause):
                let message =
                    "The request body could not be read, so the request was broken off; see the cause and mend the body's "
                    + "source."
                return (.badRequest, message, cause)
            case .length:
                let message =
                    "The request body is longer or shorter than it was said to be; declare its true length, or none."
                return (.badRequest, message, nil)
            case .stalled: return (stalled.code, stalled.message, nil)
            }
        }

        private static func meaning(of fault: ChannelFault) -> Meaning {
            switch fault.kind {
            case .closed: ended
            case .broken: fault.cause.map { meaning(of: $0) } ?? connectionLost
            case .readTimedOut: silence
            case .writeStalled: stalled
            }
        }

        /// What an error of an open connection means.
        private static func meaning(of error: any Error) -> Meaning {
            switch error {
            case NIOSSLError.uncleanShutdown: connectionLost
            case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError:
                "\(error)".contains("CERT") ? clientCertificate : brokenTLS
            default: connectionLost
            }
        }

        /// What an error of connecting means.
        private static func opening(_ error: any Error) -> Meaning {
            switch error {
            case let error as NIOConnectionError:
                let isUnresolved =
                    error.connectionErrors.isEmpty && (error.dnsAError != nil || error.dnsAAAAError != nil)
                return isUnresolved ? resolve : connect
            case is OriginConnector.TimedOut: return connectTimeout
            case NIOSSLError.handshakeFailed(let reason):
                return "\(reason)".contains("CERTIFICATE_VERIFY") ? certificate : handshake
            case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate: return certificate
            case let error as NIOSSLExtraError:
                switch error {
                case .failedToValidateHostname, .serverHostnameImpossibleToMatch: return certificate
                default: return handshake
                }
            case is NIOSSLError, is BoringSSLError: return handshake
            case ChannelError.connectTimeout: return connectTimeout
            default: return connect
            }
        }

        private static let resolve: Meaning = (
            .resolve, "The host name could not be resolved; check its spelling and the machine's DNS."
        )
        private static let connect: Meaning = (
            .connect, "No connection could be made; check host and port, and that the server runs."
        )
        private static let connectTimeout: Meaning = (
            .connect,
            "No connection could be made in time; check host and port, and that nothing in between drops packets."
        )
        private static let handshake: Meaning = (
            .tls, "No TLS connection could be made; check that the port speaks TLS and which versions it offers."
        )
        private static let brokenTLS: Meaning = (
            .tls, "TLS failed on an open connection; see the cause, and send again if the request is safe to repeat."
        )
        private static let certificate: Meaning = (
            .certificate,
            "The server's certificate was refused; renew it, or trust its issuer in the TLS configuration."
        )
        private static let clientCertificate: Meaning = (
            .certificate,
            "The server refused the client's certificate or misses one; give one in the TLS configuration."
        )
        private static let silence: Meaning = (
            .timeout, "The server was silent for too long; allow a longer stall timeout, or find out why it is slow."
        )
        private static let stalled: Meaning = (
            .timeout, "The server took no bytes for too long; allow a longer stall timeout, or find out why it is slow."
        )
        private static let connectionLost: Meaning = (
            .connectionLost,
            "The connection broke before the response was complete; send again if the request is safe to repeat."
        )
        private static let ended: Meaning = (
            .connectionLost, "The exchange was ended on this side, since the transport is being shut down."
        )
    }
#endif
