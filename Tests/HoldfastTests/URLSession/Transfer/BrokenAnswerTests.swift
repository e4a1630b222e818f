// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

#if !canImport(Darwin)
    @Suite("Linux: errors of real connections, RETRY §3.1", .timeLimit(.minutes(20)))
    struct BrokenAnswerTests {
        struct Answer: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let reply: LoopbackReply
            let code: ServiceError.Code
            let progress: TransportProgress
        }

        @Test(
            "Linux: the errors of broken responses",
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

        @Test("Linux: a TLS connection that ends during the handshake")
        func tls() async throws {
            let server = try LoopbackServer.start(connectionLimit: 0) { _ in LoopbackReply() }
            let error = await #expect(throws: ServiceError.self) {
                try await URLSessionTransport().send(try #require(URL(string: "https://127.0.0.1:\(server.port)/")))
            }
            #expect(error?.code == .tls, "\(String(describing: error))")
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

        @Test("Linux: a request body that was not sent completely has sent only its head")
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
                #expect(error?.code == .connectionLost, "\(String(describing: error))")
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
#endif
