// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

@testable import HoldfastServices

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Streams over URLSession and real sockets", .timeLimit(.minutes(20)))
struct URLSessionStreamTests {
    @Test("The test's server computes the accept key as in RFC 6455 §1.3")
    func acceptKey() {
        #expect(WebSocketHandshake.accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test(
        "A stream carries messages and the peer's close code; if Foundation has no WebSockets it fails as unsupported"
    )
    func loopback() async throws {
        let server = try LoopbackServer.start { request in
            WebSocketHandshake.reply(
                to: request,
                frames: [WebSocketHandshake.text("hello"), WebSocketHandshake.close(4000, "bye")]
            )
        }
        defer { server.stop() }
        var service = StreamService(apiUrl: "127.0.0.1:\(server.port)", usesSecureProtocol: false)
        service.header = ["X-Service": "1"]
        service.streamTransport = URLSessionStreamTransport()
        let stream = ChatRequest().schedule(with: ServiceClient(service))
        var iterator = stream.makeAsyncIterator()
        do {
            #expect(try await iterator.next()?.get() == "hello")
        } catch let error as ServiceError where error.code == .unsupported {
            #if canImport(Darwin)
                Issue.record("Apple systems have WebSockets")
            #endif
            #expect(error.progress == .notSent)
            #expect(error.message.contains("streamTransport"))
            #expect((error.cause as? URLError)?.code == .unsupportedURL)
            #expect(server.connectionCount == 0)
            #expect(service.log.lines == ["second unsupported", "first unsupported", "process unsupported"])
            return
        }
        #expect(server.requests.first?.path == "/chat")
        #expect(server.requests.first?.values(of: "X-Service") == ["1"])
        await #expect {
            _ = try await iterator.next()
        } throws: { error in
            (error as? StreamClosedError)?.code.rawValue == 4000
        }
    }

    #if !canImport(Darwin)
        @Test(
            "Without WebSockets in Foundation, the platform's own task fails at once, without a connection, and nothing hangs"
        )
        func foundation() async throws {
            let server = try LoopbackServer.start { request in
                WebSocketHandshake.reply(to: request, frames: [WebSocketHandshake.text("hello")])
            }
            defer { server.stop() }
            let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)/"))
            let task = URLSession(configuration: .ephemeral).webSocketTask(with: url)
            task.resume()
            defer { task.cancel(with: .goingAway, reason: nil) }
            do {
                _ = try await task.receive()
                return
            } catch {
                #expect((error as? URLError)?.code == .unsupportedURL)
            }
            await #expect {
                try await task.send(.string("hi"))
            } throws: { error in
                (error as? URLError)?.code == .unsupportedURL
            }
            await #expect {
                try await task.sendPing()
            } throws: { error in
                (error as? URLError)?.code == .networkConnectionLost
            }
            #expect(server.connectionCount == 0)
        }
    #endif

    @Test("Without a listener, or without a WebSocket server, opening fails and does not hang")
    func refused() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(404) }
        defer { server.stop() }
        for port in [try LoopbackServer.refusingPort(), server.port] {
            var service = StreamService(apiUrl: "127.0.0.1:\(port)", usesSecureProtocol: false)
            service.streamTransport = URLSessionStreamTransport()
            let stream = ChatRequest().schedule(with: ServiceClient(service))
            await #expect(throws: ServiceError.self) { try await stream.waitUntilOpen() }
            await #expect(throws: ServiceError.self) { try await stream.ping() }
        }
    }

    @Test(
        "What URLSession's errors mean for a stream",
        arguments: [
            (.unsupportedURL, .unsupported), (.cannotFindHost, .resolve), (.cannotConnectToHost, .connect),
            (.timedOut, .timeout), (.notConnectedToInternet, .offline), (.secureConnectionFailed, .tls),
            (.serverCertificateUntrusted, .certificate), (.badServerResponse, .protocolError),
            (.networkConnectionLost, .connectionLost), (.unknown, .connectionLost),
        ] as [(URLError.Code, ServiceError.Code)]
    )
    func errors(_ code: URLError.Code, becomes expected: ServiceError.Code) throws {
        let error = try #require(StreamTaskFailure.serviceError(for: URLError(code)) as? ServiceError)
        #expect(error.code == expected)
        #expect((error.cause as? URLError)?.code == code)
    }
}
