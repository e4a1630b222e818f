// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import Holdfast
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

    extension ClientFailure {
        /// What an error of the layers below the client means; nil if it is not one of them.
        static func beneath(_ error: any Error) -> FailureMeaning? {
            switch error {
            case let error as NIOConnectionError: ofConnecting(error)
            case let error as NIOSSLError: ofTLS(error)
            case let error as NIOSSLExtraError: ofTLS(error)
            case let error as BoringSSLError: "\(error)".contains("CERTIFICATE") ? .clientCertificate : .brokenTLS
            case let error as IOError: ofSocket(error)
            case let error as ChannelError: ofChannel(error)
            case let error as HTTPParserError: ofParsing(error)
            case let error as NIOHTTP2Errors.StreamError: beneath(error.baseError)
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
#endif
