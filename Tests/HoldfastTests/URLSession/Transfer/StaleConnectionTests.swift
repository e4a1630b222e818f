// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A kept connection that breaks before the answer, which libcurl would mend by sending the request again by itself.
@Suite("A stale connection", .timeLimit(.minutes(20)))
struct StaleConnectionTests {
    /// Answers `/kept`, and resets the connection on whatever else is asked.
    private static func server() throws -> LoopbackServer {
        try LoopbackServer.start { request in
            request.path == "/kept" ? LoopbackReply(body: "x") : LoopbackReply(before: [.reset])
        }
    }

    @Test(
        "Linux: a request that is not idempotent reaches the server once, and the call ends at once and does not hang",
        arguments: [
            ("POST", "body"), ("POST", ""), ("PATCH", "body"), ("PATCH", ""), ("PUT", "body"), ("POST", "file"),
            ("PUT", "file"), ("POST", "empty file"),
        ]
    )
    func sentOnce(method: String, body: String) async throws {
        let server = try Self.server()
        defer { server.stop() }
        let transport = URLSessionTransport()
        let client = Pipeline(transport: transport)
        _ = try await client.data(for: URLRequest(url: server.url("/kept")))
        var request = URLRequest(url: server.url("/broken"))
        request.httpMethod = method
        let file = try ScratchFile(body == "file" ? patternedBytes(100_000) : [])
        let content: RequestBody =
            switch body {
            case "": .none
            case "file", "empty file": .file(file.url)
            default: .data(Data(body.utf8))
            }
        do {
            _ = try await client.send(request, body: content)
            Issue.record("the call should fail")
        } catch let error as ServiceError {
            #expect(error.code == .connectionLost)
            #expect(error.progress == .bodySent)
            #if !canImport(Darwin)
                #expect(error.connectionReused == !["", "empty file"].contains(body))
            #endif
        }
        #expect(server.requests.filter { $0.path == "/broken" }.count == 1)
    }

    #if !canImport(Darwin)
        @Test(
            "Linux: all content was sent, although the delegate's queue has not reported it yet",
            arguments: ["body", "file"]
        )
        func slowDelegate(_ form: String) async throws {
            let server = try Self.server()
            defer { server.stop() }
            let transport = URLSessionTransport()
            _ = try await transport.send(server.url("/kept")).text()
            transport.session.delegateQueue.isSuspended = true
            defer { transport.session.delegateQueue.isSuspended = false }
            let file = try ScratchFile(patternedBytes(100_000))
            let body: RequestBody = form == "file" ? .file(file.url) : .data(Data("content".utf8))
            let error = await #expect(throws: ServiceError.self) {
                try await transport.send(server.url("/broken"), method: "PUT", body: body)
            }
            #expect(error?.code == .connectionLost)
            #expect(error?.progress == .bodySent)
            #expect(error?.connectionReused == true)
        }
    #endif

    @Test("Linux: a call declared not idempotent is sent once, whatever its method")
    func declaredUnsafe() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport())
        _ = try await client.data(for: URLRequest(url: server.url("/kept")))
        var options = CallOptions()
        options.isIdempotent = false
        await #expect(throws: ServiceError.self) {
            try await client.send(URLRequest(url: server.url("/broken")), options: options)
        }
        #if !canImport(Darwin)
            #expect(server.requests.filter { $0.path == "/broken" }.count == 1)
        #endif
    }

    @Test("Linux: a gateway's request is sent once if its method is not idempotent, whatever the call declares")
    func gateway() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .gateway)
        _ = try await client.data(for: URLRequest(url: server.url("/kept")))
        var request = URLRequest(url: server.url("/broken"))
        request.httpMethod = "POST"
        var options = CallOptions()
        options.isIdempotent = true
        await #expect(throws: ServiceError.self) { try await client.send(request, options: options) }
        #if !canImport(Darwin)
            #expect(server.requests.filter { $0.path == "/broken" }.count == 1)
        #endif
    }

    @Test(
        "Retries by the rules: a PUT is resent at once, a POST is not",
        arguments: ["PUT", "POST"],
        ["bytes", "file"]
    )
    func retried(_ method: String, _ form: String) async throws {
        let server = try LoopbackServer.start { request in
            request.number == 1 ? LoopbackReply(before: [.reset]) : LoopbackReply(body: request.text)
        }
        defer { server.stop() }
        let client = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff())
        _ = try await client.data(for: URLRequest(url: server.url("/kept")))
        var request = URLRequest(url: server.url("/broken"))
        request.httpMethod = method
        let file = try ScratchFile(Array("content".utf8))
        let body: RequestBody = form == "file" ? .file(file.url) : .data(Data("content".utf8))
        if method == "PUT" {
            #expect(try await client.send(request, body: body).text() == "content")
        } else {
            await #expect(throws: ServiceError.self) { try await client.send(request, body: body) }
        }
        #expect(server.requests.filter { $0.path == "/broken" }.count == (method == "PUT" ? 2 : 1))
    }
}
