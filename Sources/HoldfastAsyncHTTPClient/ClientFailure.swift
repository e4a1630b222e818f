// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore
    internal import NIOHTTP1
    internal import NIOHTTP2
    internal import NIOPosix
    internal import NIOSSL

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Musl)
        private import Musl
    #else
        private import Glibc
    #endif

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
                let isWrongLength = cause as? HTTPClientError == .bodyLengthMismatch
                let meaning = isWrongLength ? FailureMeaning.wrongLength : .unreadableBody
                return meaning.error(cause: cause, progress: trace.progress)
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
            return meaning(ofLower: error) ?? .unknown
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

    extension ClientFailure {
        /// What an error of the layers below the client means; nil if it is not one of them.
        static func meaning(ofLower error: any Error) -> FailureMeaning? {
            switch error {
            case let error as NIOConnectionError: ofConnecting(error)
            case let error as NIOSSLError: ofTLS(error)
            case let error as NIOSSLExtraError: ofTLS(error)
            case let error as BoringSSLError: "\(error)".contains("CERTIFICATE") ? .clientCertificate : .brokenTLS
            case let error as IOError: ofSocket(error)
            case let error as ChannelError: ofChannel(error)
            case let error as HTTPParserError: ofParsing(error)
            case let error as NIOHTTP2Errors.StreamError: meaning(ofLower: error.baseError)
            case let error as any NIOHTTP2Error: ofHTTP2(error)
            default: ofName("\(String(reflecting: type(of: error)))")
            }
        }

        private static func ofConnecting(_ error: NIOConnectionError) -> FailureMeaning {
            let isUnresolved = error.connectionErrors.isEmpty && (error.dnsAError != nil || error.dnsAAAAError != nil)
            return isUnresolved ? .resolve : .connect
        }

        private static func ofTLS(_ error: NIOSSLError) -> FailureMeaning {
            switch error {
            case .handshakeFailed(let reason): "\(reason)".contains("CERTIFICATE_VERIFY") ? .certificate : .handshake
            case .noCertificateToValidate, .unableToValidateCertificate: .certificate
            case .uncleanShutdown: .connectionLost
            default: .brokenTLS
            }
        }

        private static func ofTLS(_ error: NIOSSLExtraError) -> FailureMeaning {
            switch error {
            case .failedToValidateHostname, .serverHostnameImpossibleToMatch: .certificate
            case .cannotUseIPAddressInSNI, .invalidSNIHostname: .handshake
            default: .brokenTLS
            }
        }

        /// An open connection is not refused, and a path is looked up before there is one, so these errors come from
        /// connecting.
        private static func ofSocket(_ error: IOError) -> FailureMeaning {
            switch error.errnoCode {
            case ECONNREFUSED, ENOENT, EACCES, EADDRNOTAVAIL: .connect
            default: .connectionLost
            }
        }

        private static func ofChannel(_ error: ChannelError) -> FailureMeaning {
            switch error {
            case .connectTimeout, .connectPending, .unknownLocalAddress: .connect
            case .ioOnClosedChannel, .alreadyClosed, .outputClosed, .inputClosed, .eof: .connectionLost
            default: .unknown
            }
        }

        private static func ofParsing(_ error: HTTPParserError) -> FailureMeaning {
            switch error {
            case .invalidEOFState, .closedConnection: .connectionLost
            default: .notHTTP
            }
        }

        /// REFUSED_STREAM, which also stands for the streams that a GOAWAY excluded, proves that nothing was processed (RFC
        /// 9113 §8.7).
        private static func ofHTTP2(_ error: any NIOHTTP2Error) -> FailureMeaning {
            switch error {
            case let error as NIOHTTP2Errors.StreamClosed:
                switch error.errorCode {
                case .refusedStream: .refused
                case .protocolError, .compressionError, .frameSizeError, .flowControlError: .notHTTP
                default: .connectionLost
                }
            case is NIOHTTP2Errors.CreatedStreamAfterGoaway, is NIOHTTP2Errors.NoStreamIDAvailable: .refused
            case is NIOHTTP2Errors.IOOnClosedConnection, is NIOHTTP2Errors.NoSuchStream: .connectionLost
            case is NIOHTTP2Errors.ForbiddenHeaderField, is NIOHTTP2Errors.InvalidHTTP2HeaderFieldName,
                is NIOHTTP2Errors.InvalidHTTP2HeaderFieldValue:
                .badField
            default: .notHTTP
            }
        }

        /// Errors whose type this module cannot or need not import.
        private static func ofName(_ name: String) -> FailureMeaning? {
            if name.hasPrefix("NIOHTTPCompression.") { return .undecodable }
            if name.hasPrefix("NIOSOCKS.") { return .connect }
            if name.hasPrefix("AsyncHTTPClient.HTTP2Received") { return .handshake }
            return nil
        }
    }

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
