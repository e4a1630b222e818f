// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import LoopbackServer
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession's errors, RETRY §3.1", .timeLimit(.minutes(5)))
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

    @Test("An error of somebody else's is kept as the cause")
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

    @Test("A body file that is not there has sent nothing")
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
        let foreign = await #expect(throws: ServiceError.self) {
            try await transport.send(try #require(URL(string: "gopher://127.0.0.1/")))
        }
        #expect(foreign?.code == .badRequest)
        #expect(foreign?.progress == .notSent)
        var request = URLRequest(url: try #require(URL(string: "http://host/")))
        request.url = nil
        let empty = request
        let missing = await #expect(throws: ServiceError.self) {
            try await transport.send(empty, body: .none, context: CallContext())
        }
        #expect(missing?.code == .badRequest)
    }

    #if !canImport(Darwin)
        struct Answer: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let reply: LoopbackReply
            let code: ServiceError.Code
            let progress: TransportProgress
        }

        @Test(
            "Linux: what really comes of broken answers",
            arguments: [
                Answer(
                    testDescription: "reset before the head",
                    reply: LoopbackReply(before: [.reset]),
                    code: .connectionLost,
                    progress: .bodySent
                ),
                Answer(
                    testDescription: "closed before the head",
                    reply: LoopbackReply(before: [.close]),
                    code: .connectionLost,
                    progress: .bodySent
                ),
                Answer(
                    testDescription: "not HTTP",
                    reply: LoopbackReply(before: [.raw("SSH-2.0-x\r\n\r\n"), .close]),
                    code: .protocolError,
                    progress: .bodySent
                ),
                Answer(
                    testDescription: "Content-Length is no number",
                    reply: LoopbackReply(before: [.raw("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), .close]),
                    code: .protocolError,
                    progress: .bodySent
                ),
                Answer(
                    testDescription: "a bad chunk",
                    reply: LoopbackReply(before: [
                        .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n"), .close,
                    ]),
                    code: .protocolError,
                    progress: .headReceived
                ),
                Answer(
                    testDescription: "truncated chunks",
                    reply: LoopbackReply(framing: .chunked, steps: [.send("some"), .close]),
                    code: .connectionLost,
                    progress: .bytesReceived
                ),
                Answer(
                    testDescription: "truncated length",
                    reply: LoopbackReply(framing: .length(100), steps: [.send("some")]),
                    code: .connectionLost,
                    progress: .bytesReceived
                ),
                Answer(
                    testDescription: "reset in the body",
                    reply: LoopbackReply(framing: .length(100), steps: [.send("some"), .reset]),
                    code: .connectionLost,
                    progress: .bytesReceived
                ),
                Answer(
                    testDescription: "gzip that is none",
                    reply: LoopbackReply(fields: [("Content-Encoding", "gzip")], body: "plain"),
                    code: .protocolError,
                    progress: .headReceived
                ),
                Answer(
                    testDescription: "an unknown content coding",
                    reply: LoopbackReply(fields: [("Content-Encoding", "aws-chunked")], body: "plain"),
                    code: .unsupported,
                    progress: .headReceived
                ),
            ]
        )
        func broken(_ answer: Answer) async throws {
            let server = try LoopbackServer.start { _ in answer.reply }
            let error = await #expect(throws: ServiceError.self) {
                try await URLSessionTransport().send(server.url()).body.collect()
            }
            #expect(error?.code == answer.code, "\(String(describing: error))")
            // A reset may overtake the bytes before it.
            #expect(error?.progress == answer.progress || answer.testDescription == "reset in the body")
            #expect(error?.cause is URLError)
        }

        @Test("Linux: a TLS connection that ends in the handshake")
        func tls() async throws {
            let server = try LoopbackServer.start(connectionLimit: 0) { _ in LoopbackReply() }
            let error = await #expect(throws: ServiceError.self) {
                try await URLSessionTransport().send(try #require(URL(string: "https://127.0.0.1:\(server.port)/")))
            }
            #expect(error?.code == .tls)
        }

        @Test("Linux: a GET with content is refused before it is sent")
        func contentInGet() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            let error = await #expect(throws: ServiceError.self) {
                try await URLSessionTransport().send(server.url(), body: .data(Data("x".utf8)))
            }
            #expect(error?.code == .unsupported)
            #expect(error?.progress == .notSent)
            #expect(server.requests.isEmpty)
        }

        @Test("Linux: a request body that did not leave whole has sent its head only")
        func partlySent() async throws {
            let server = try LoopbackServer.start(bodyLimit: 1_000) { _ in LoopbackReply() }
            let stop = LoopbackGate()
            let silent = try LoopbackServer.start { _ in LoopbackReply(before: [.pause(stop), .reset]) }
            // The server that refuses the length answers 400 and closes, with most of the body unsent.
            let outcome = await Result.catching {
                try await URLSessionTransport().send(server.url(), method: "PUT", body: .data(Data(count: 64 << 20)))
            }
            switch outcome {
            case .success(let response):
                #expect(response.status == 400)
            case .failure(let error):
                let error = error as? ServiceError
                #expect(error?.code == .connectionLost)
                #expect(error?.progress == .headSent)
            }
            let task = Task {
                try await URLSessionTransport().send(silent.url(), method: "PUT", body: .data(Data(count: 10)))
            }
            try await stop.reached()
            stop.open()
            let error = await #expect(throws: ServiceError.self) { try await task.value }
            #expect(error?.code == .connectionLost)
            #expect(error?.progress == .bodySent)
        }
    #endif
}

extension Result where Failure == any Error {
    /// What an asynchronous operation came to.
    fileprivate static func catching(_ operation: () async throws -> Success) async -> Self {
        do {
            return .success(try await operation())
        } catch {
            return .failure(error)
        }
    }
}
