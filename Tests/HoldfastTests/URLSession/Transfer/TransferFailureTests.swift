// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession's errors, RETRY §3.1", .timeLimit(.minutes(20)))
struct TransferFailureTests {
    struct Case: Sendable {
        let urlError: URLError.Code
        let progress: TransportProgress
        let code: ServiceError.Code
        let proven: TransportProgress

        init(
            _ urlError: URLError.Code,
            _ code: ServiceError.Code,
            _ proven: TransportProgress,
            at progress: TransportProgress = .bodySent
        ) {
            self.urlError = urlError
            self.progress = progress
            self.code = code
            self.proven = proven
        }
    }

    @Test(
        "Each code has its meaning, and `notSent` is claimed only where it is certain",
        arguments: [
            Case(.cannotFindHost, .resolve, .notSent),
            Case(.dnsLookupFailed, .resolve, .notSent),
            Case(.cannotConnectToHost, .connect, .notSent),
            Case(.timedOut, .timeout, .bodySent),
            Case(.timedOut, .timeout, .headSent, at: .headSent),
            Case(.networkConnectionLost, .connectionLost, .bodySent),
            Case(.networkConnectionLost, .connectionLost, .bytesReceived, at: .bytesReceived),
            Case(.notConnectedToInternet, .offline, .notSent),
            Case(.dataNotAllowed, .offline, .notSent),
            Case(.internationalRoamingOff, .offline, .notSent),
            Case(.secureConnectionFailed, .tls, .bodySent),
            Case(.serverCertificateUntrusted, .certificate, .notSent),
            Case(.serverCertificateHasBadDate, .certificate, .notSent),
            Case(.clientCertificateRejected, .certificate, .bodySent),
            Case(.badURL, .badRequest, .notSent),
            Case(.fileDoesNotExist, .badRequest, .notSent),
            Case(.cannotParseResponse, .protocolError, .bodySent),
            Case(.badServerResponse, .connectionLost, .bodySent),
            Case(.badServerResponse, .protocolError, .headReceived, at: .headReceived),
            Case(.httpTooManyRedirects, .tooManyRedirects, .bodySent),
            Case(.userAuthenticationRequired, .authenticationRequired, .bodySent),
            Case(.cancelled, .other, .bodySent),
            Case(.unknown, .other, .bodySent),
            Case(.unknown, .protocolError, .headReceived, at: .headReceived),
            Case(.backgroundSessionWasDisconnected, .other, .bodySent),
        ]
    )
    func table(_ test: Case) {
        let error = TransferFailure.serviceError(
            for: URLError(test.urlError),
            url: URL(string: "http://host/"),
            progress: test.progress,
            connectionReused: true
        )
        #expect(error.code == test.code)
        #expect(error.progress == test.proven)
        #expect(error.connectionReused)
        #expect((error.cause as? URLError)?.code == test.urlError)
    }

    @Test(
        "An unsupported URL is the caller's fault only if its scheme is not HTTP",
        arguments: ["http", "HTTPS", "gopher"]
    )
    func unsupportedURL(_ scheme: String) {
        let error = TransferFailure.serviceError(
            for: URLError(.unsupportedURL),
            url: URL(string: "\(scheme)://host/"),
            progress: .bodySent,
            connectionReused: false
        )
        #expect(error.code == (scheme == "gopher" ? .badRequest : .protocolError))
        #expect(error.progress == (scheme == "gopher" ? .notSent : .bodySent))
    }

    #if !canImport(Darwin)
        @Test(
            "Linux: libcurl's messages replace a missing code",
            arguments: [
                ("Recv failure: Connection reset by peer", "https", .bodySent, .tls),
                ("Recv failure: Connection reset by peer", "http", .bodySent, .connectionLost),
                ("Recv failure: Connection reset by peer", "https", .headReceived, .connectionLost),
                ("Send failure: Broken pipe", "http", .headSent, .connectionLost),
                ("transfer closed with 95 bytes remaining to read", "http", .bytesReceived, .connectionLost),
                ("SSL certificate problem: self-signed certificate", "https", .bodySent, .certificate),
                ("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to a", "https", .bodySent, .tls),
                (
                    "Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server", "http", .headSent,
                    .connect
                ),
                ("something new", "http", .bodySent, .other),
            ] as [(String, String, TransportProgress, ServiceError.Code)]
        )
        func curlMessages(text: String, scheme: String, progress: TransportProgress, code: ServiceError.Code) {
            let error = TransferFailure.serviceError(
                for: URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: text]),
                url: URL(string: "\(scheme)://host/"),
                progress: progress,
                connectionReused: false
            )
            #expect(error.code == code)
        }
    #endif

    @Test("A failed connection proves nothing if content was sent over an earlier one, or a head came")
    func earlierConnection() {
        for (hasSentContent, observed) in [(true, TransportProgress.headSent), (false, .headReceived)] {
            let error = TransferFailure.serviceError(
                for: URLError(.cannotConnectToHost),
                url: nil,
                progress: observed,
                connectionReused: false,
                hasSentContent: hasSentContent
            )
            #expect(error.code == .connect)
            #expect(error.progress == observed)
        }
    }

    @Test("A foreign error is kept as the cause")
    func foreignError() {
        struct Odd: Error {}
        let error = TransferFailure.serviceError(for: Odd(), url: nil, progress: .headSent, connectionReused: false)
        #expect(error.code == .other)
        #expect(error.cause is Odd)
    }

    @Test("A refused connection and an unknown host have sent nothing")
    func unreachable() async throws {
        let port = try LoopbackServer.refusingPort()
        let transport = URLSessionTransport()
        let refused = await #expect(throws: ServiceError.self) {
            try await transport.send(
                try #require(URL(string: "http://127.0.0.1:\(port)/")),
                method: "POST",
                body: .data(Data("x".utf8))
            )
        }
        #expect(refused?.code == .connect)
        #expect(refused?.progress == .notSent)
        let unknown = await #expect(throws: ServiceError.self) {
            try await transport.send(try #require(URL(string: "http://no-such-host.invalid/")))
        }
        #expect(unknown?.code == .resolve)
        #expect(unknown?.progress == .notSent)
    }

    @Test("A missing body file has sent nothing")
    func missingFile() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let error = await #expect(throws: ServiceError.self) {
            try await URLSessionTransport().send(
                server.url(),
                method: "PUT",
                body: .file(URL(fileURLWithPath: "/no/such/file"))
            )
        }
        #expect(error?.code == .badRequest)
        #expect(error?.progress == .notSent)
    }

    @Test("Requests without a URL, or with one of another scheme, are the caller's fault")
    func badRequests() async throws {
        let transport = URLSessionTransport()
        for text in ["gopher://127.0.0.1/", "ftp://127.0.0.1/x", "FTP://127.0.0.1/x", "file:///etc/hosts", "/x"] {
            let foreign = await #expect(throws: ServiceError.self) {
                try await transport.send(try #require(URL(string: text)))
            }
            #expect(foreign?.code == .badRequest)
            #expect(foreign?.progress == .notSent)
            #expect(foreign?.message.contains("scheme is not supported") == true, "\(text)")
        }
        var request = URLRequest(url: try #require(URL(string: "http://host/")))
        request.url = nil
        let empty = request
        let missing = await #expect(throws: ServiceError.self) {
            try await transport.send(empty, body: .none, context: CallContext())
        }
        #expect(missing?.code == .badRequest)
    }
}
