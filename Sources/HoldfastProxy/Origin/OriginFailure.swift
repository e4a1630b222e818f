// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore
    internal import NIOPosix
    internal import NIOSSL

    /// What the underlying errors mean: the only table that maps them to ``ServiceError``.
    enum OriginFailure {
        /// The error for a failed exchange.
        static func serviceError(
            for error: any Error,
            progress: TransportProgress,
            connectionReused: Bool
        ) -> any Error {
            switch error {
            case is CancellationError, is ServiceError: return error
            case let fault as MessageFault:
                let meaning = FailureMeaning(
                    code: .protocolError,
                    message: fault.isOverLimit
                        ? "The head of the server's response is too large. Raise the limits (headBytes, headLines; --header-limit, --header-lines)."
                        : "The server's response is not valid HTTP/1.1: \(fault.message)"
                )
                return meaning.error(cause: fault, progress: progress, connectionReused: connectionReused)
            case let failure as Upload.Failure:
                var cause: (any Error)?
                if case .source(let error) = failure { cause = error }
                return meaning(of: failure)
                    .error(cause: cause, progress: progress, connectionReused: connectionReused)
            case let fault as ChannelFault:
                return meaning(of: fault)
                    .error(cause: fault.cause, progress: progress, connectionReused: connectionReused)
            default:
                return meaning(of: error)
                    .error(cause: error, progress: progress, connectionReused: connectionReused)
            }
        }

        /// The cause of a failure for an operator: each address that was tried, with the system's error.
        static func text(of error: any Error) -> String {
            guard let error = error as? NIOConnectionError else { return "\(error)" }
            var parts = error.connectionErrors.map { "\($0.target): \($0.error)" }
            if parts.isEmpty { parts = [error.dnsAError, error.dnsAAAAError].compactMap { $0.map { "\($0)" } } }
            return "\(error.host):\(error.port): " + parts.joined(separator: "; ")
        }

        /// The error for a connection that could not be opened.
        static func opening(_ error: any Error) -> any Error {
            switch error {
            case is CancellationError, is ServiceError: error
            case OriginPool.Refusal.shutDown: FailureMeaning.shutDown.error(progress: .notSent)
            case OriginPool.Refusal.lineIsFull: FailureMeaning.lineIsFull.error(progress: .notSent)
            default: meaning(ofOpening: error).error(cause: error, progress: .notSent)
            }
        }

        /// The error of an attempt whose deadline has passed.
        static func timeout(progress: TransportProgress, connectionReused: Bool) -> ServiceError {
            FailureMeaning.timeout.error(progress: progress, connectionReused: connectionReused)
        }

        private static func meaning(of failure: Upload.Failure) -> FailureMeaning {
            switch failure {
            case .source: .unreadableBody
            case .length: .wrongLength
            case .stalled: .stalled
            }
        }

        private static func meaning(of fault: ChannelFault) -> FailureMeaning {
            switch fault.kind {
            case .closed: .ended
            case .broken: fault.cause.map { meaning(of: $0) } ?? .connectionLost
            case .readTimedOut: .silence
            case .writeStalled: .stalled
            }
        }

        /// What an error of an open connection means.
        private static func meaning(of error: any Error) -> FailureMeaning {
            switch error {
            case NIOSSLError.uncleanShutdown: .connectionLost
            case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError:
                "\(error)".contains("CERT") ? .clientCertificate : .brokenTLS
            default: .connectionLost
            }
        }

        /// What an error of connecting means.
        private static func meaning(ofOpening error: any Error) -> FailureMeaning {
            switch error {
            case let error as NIOConnectionError:
                let isUnresolved =
                    error.connectionErrors.isEmpty && (error.dnsAError != nil || error.dnsAAAAError != nil)
                return isUnresolved ? .resolve : .connect
            case is OriginConnector.TimedOut: return .connectTimeout
            case NIOSSLError.handshakeFailed(let reason):
                return "\(reason)".contains("CERTIFICATE_VERIFY") ? .certificate : .handshake
            case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate: return .certificate
            case let error as NIOSSLExtraError:
                switch error {
                case .failedToValidateHostname, .serverHostnameImpossibleToMatch: return .certificate
                default: return .handshake
                }
            case is NIOSSLError, is BoringSSLError: return .handshake
            case ChannelError.connectTimeout: return .connectTimeout
            default: return .connect
            }
        }
    }

    /// What this transport can meet in addition to the failures that all transports share.
    extension FailureMeaning {
        fileprivate static let shutDown = Self(
            code: .unsupported,
            message: "The transport was shut down; create a new one, and shut it down after its last call."
        )
        fileprivate static let lineIsFull = Self(
            code: .tooManyInFlight,
            message: "Too many requests wait for a connection. Allow more connections, or send fewer requests at once."
        )
        fileprivate static let connect = Self(
            code: .connect,
            message: "No connection could be made. Check host and port, and that the server is running."
        )
        fileprivate static let connectTimeout = Self(
            code: .connect,
            message:
                "No connection could be made in time. Check host and port, and that nothing in between drops packets."
        )
        fileprivate static let silence = Self(
            code: .timeout,
            message: "The server sent nothing for too long. Allow a longer stall timeout, or find out why it is slow."
        )
        fileprivate static let stalled = Self(
            code: .timeout,
            message:
                "The server accepted no bytes for too long. Allow a longer stall timeout, or find out why it is slow."
        )
        fileprivate static let ended = Self(
            code: .connectionLost,
            message: "The exchange was ended because the transport is being shut down."
        )
    }
#endif
