// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Holdfast
    import NIOCore
    import NIOHTTP1
    import NIOHTTP2
    import NIOSSL
    import Testing

    @testable import HoldfastAsyncHTTPClient

    @Suite("What the client's errors mean")
    struct ClientFailureTests {
        /// One row: an error, its code, and its progress after a request whose body was sent.
        struct Row: Sendable, CustomStringConvertible {
            let error: any Error
            let code: ServiceError.Code
            let progress: TransportProgress

            init(_ error: any Error, _ code: ServiceError.Code, _ progress: TransportProgress) {
                self.error = error
                self.code = code
                self.progress = progress
            }

            var description: String { "\(error)" }
        }

        static let ofClient: [Row] = ofRequest + ofConnecting + ofExchange

        private static func row(
            _ error: HTTPClientError,
            _ code: ServiceError.Code,
            _ progress: TransportProgress
        ) -> Row {
            Row(error, code, progress)
        }

        private static let ofRequest = [
            row(.invalidURL, .badRequest, .notSent), row(.emptyHost, .badRequest, .notSent),
            row(.missingSocketPath, .badRequest, .notSent), row(.emptyScheme, .badRequest, .notSent),
            row(.unsupportedScheme("ftp"), .badRequest, .notSent), row(.traceRequestWithBody, .badRequest, .notSent),
            row(.invalidHeaderFieldNames(["a b"]), .badRequest, .notSent),
            row(.invalidHeaderFieldValues(["\n"]), .badRequest, .notSent),
            row(.identityCodingIncorrectlyPresent, .badRequest, .notSent),
            row(.contentLengthMissing, .badRequest, .notSent), row(.alreadyShutdown, .unsupported, .notSent),
            row(.shutdownUnsupported, .unsupported, .notSent), row(.bodyLengthMismatch, .badRequest, .bodySent),
            row(.writeAfterRequestSent, .badRequest, .bodySent),
        ]

        private static let ofConnecting = [
            row(.connectTimeout, .connect, .notSent), row(.socksHandshakeTimeout, .connect, .notSent),
            row(.httpProxyHandshakeTimeout, .connect, .notSent), row(.invalidProxyResponse, .connect, .notSent),
            row(.proxyAuthenticationRequired, .authenticationRequired, .notSent),
            row(.tlsHandshakeTimeout, .tls, .notSent),
            row(.serverOfferedUnsupportedApplicationProtocol("x"), .tls, .notSent),
            row(.getConnectionFromPoolTimeout, .connect, .notSent),
        ]

        private static let ofExchange = [
            row(.readTimeout, .timeout, .bodySent), row(.writeTimeout, .timeout, .bodySent),
            row(.deadlineExceeded, .timeout, .bodySent), row(.remoteConnectionClosed, .connectionLost, .bodySent),
            row(.uncleanShutdown, .connectionLost, .bodySent), row(.requestStreamCancelled, .connectionLost, .bodySent),
            row(.cancelled, .connectionLost, .bodySent),
            row(.redirectLimitReached, .tooManyRedirects, .headReceived),
            row(.redirectCycleDetected, .tooManyRedirects, .headReceived),
        ]

        static let below: [Row] = [
            Row(ChannelError.connectTimeout(.seconds(1)), .connect, .notSent),
            Row(ChannelError.ioOnClosedChannel, .connectionLost, .bodySent),
            Row(ChannelError.eof, .connectionLost, .bodySent),
            Row(IOError(errnoCode: 104, reason: "read"), .connectionLost, .bodySent),
            Row(IOError(errnoCode: 2, reason: "connect"), .connect, .notSent),
            Row(HTTPParserError.invalidEOFState, .connectionLost, .bodySent),
            Row(HTTPParserError.invalidConstant, .protocolError, .bodySent),
            Row(NIOSSLError.handshakeFailed(.zeroReturn), .tls, .notSent),
            Row(NIOSSLError.unableToValidateCertificate, .certificate, .notSent),
            Row(NIOSSLError.uncleanShutdown, .connectionLost, .bodySent),
            Row(NIOSSLError.writeDuringTLSShutdown, .tls, .bodySent),
            Row(NIOSSLExtraError.failedToValidateHostname, .certificate, .notSent),
            Row(BoringSSLError.zeroReturn, .tls, .bodySent),
            Row(NIOHTTP2Errors.streamClosed(streamID: 1, errorCode: .refusedStream), .connectionLost, .notSent),
            Row(NIOHTTP2Errors.streamClosed(streamID: 1, errorCode: .cancel), .connectionLost, .bodySent),
            Row(NIOHTTP2Errors.streamClosed(streamID: 1, errorCode: .enhanceYourCalm), .connectionLost, .bodySent),
            Row(NIOHTTP2Errors.streamClosed(streamID: 1, errorCode: .protocolError), .protocolError, .bodySent),
            Row(NIOHTTP2Errors.createdStreamAfterGoaway(), .connectionLost, .notSent),
            Row(NIOHTTP2Errors.noStreamIDAvailable(), .connectionLost, .notSent),
            Row(NIOHTTP2Errors.ioOnClosedConnection(), .connectionLost, .bodySent),
            Row(NIOHTTP2Errors.contentLengthViolated(), .protocolError, .bodySent),
            Row(NIOHTTP2Errors.streamError(streamID: 1, baseError: HTTPParserError.unknown), .protocolError, .bodySent),
            Row(Unheard(), .other, .bodySent),
        ]

        private struct Unheard: Error {}

        @Test("Each error has a code and proves what the table says", arguments: ofClient + below)
        func meaning(_ row: Row) {
            let error = ClientFailure.serviceError(for: row.error, ExchangeTrace(progress: .bodySent))
            #expect(error.code == row.code)
            #expect(error.progress == row.progress)
            #expect(error.cause != nil)
        }

        @Test("The table has every error that the client can throw")
        func isExhaustive() {
            let known = Set(ClientFailureTests.ofClient.compactMap { ($0.error as? HTTPClientError)?.shortDescription })
            #expect(known.count == 31)
            // Configuration errors come from reading a configuration, never from a request.
            for row in ClientFailureTests.ofClient { #expect(ClientFailure.meaning(of: row.error).code != .other) }
        }

        @Test("Once a response has begun, no error proves that nothing was sent", arguments: ofClient + below)
        func afterHead(_ row: Row) {
            for progress in [TransportProgress.headReceived, .bytesReceived] {
                let error = ClientFailure.serviceError(for: row.error, ExchangeTrace(progress: progress))
                #expect(error.progress == progress)
            }
        }

        @Test("A request that no connection accepted was not sent, whatever the error")
        func neverPlaced() {
            var trace = ExchangeTrace(progress: .bodySent)
            trace.wasNeverPlaced = true
            #expect(ClientFailure.serviceError(for: HTTPClientError.cancelled, trace).progress == .notSent)
            #expect(ClientFailure.timeout(trace, in: CallContext()).progress == .notSent)
        }

        @Test("An error that is a ServiceError already stays as it is")
        func own() {
            let own = ServiceError(.offline, "own", progress: .notSent)
            let error = ClientFailure.serviceError(for: own, ExchangeTrace(progress: .bodySent))
            #expect(error.code == own.code && error.message == "own" && error.progress == .notSent)
        }

        @Test("A failing body source is reported as the caller's error, with its cause")
        func uploadFailure() {
            var trace = ExchangeTrace(progress: .headSent)
            trace.uploadFailure = Unheard()
            let error = ClientFailure.serviceError(for: HTTPClientError.cancelled, trace)
            #expect(error.code == .badRequest)
            #expect(error.cause is Unheard)
            #expect(error.progress == .headSent)
        }
    }
#endif
