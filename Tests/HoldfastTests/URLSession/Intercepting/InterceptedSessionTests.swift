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

@Suite("An existing session that sends through a pipeline", .timeLimit(.minutes(20)))
struct InterceptedSessionTests {
    @Test("A second call is answered from the cache without a request, and an observer sees both")
    func cached() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Cache-Control", "max-age=600"), ("X-Kind", "a")], body: "fresh")
        }
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let pipeline = Pipeline(
            transport: URLSessionTransport(),
            cache: .inMemory(),
            configuration: configuration
        )
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        for _ in 0..<2 {
            let (text, head) = try await client.get(server.url("/a?b=c"))
            #expect(text == "fresh")
            #expect(head.statusCode == 200)
            #expect(head.value(forHTTPHeaderField: "x-kind") == "a")
            #expect(head.url == server.url("/a?b=c"))
            #expect(head.expectedContentLength == 5)
        }
        #expect(server.requests.count == 1)
        #expect(recorder.events(.callEnded).map(\.source) == [.network(attempts: 1), .fresh])
    }

    @Test("A 503 and a broken connection are retried, and the caller sees only the final response")
    func retried() async throws {
        let server = try LoopbackServer.start { request in
            switch request.number {
            case 0: LoopbackReply(503, body: "busy")
            case 1: LoopbackReply(before: [.reset])
            default: LoopbackReply(body: "done")
            }
        }
        let pipeline = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(.atOnce))
        defer { pipeline.stopIntercepting() }
        #expect(try await InterceptedClient(pipeline).get(server.url()).text == "done")
        #expect(server.requests.count == 3)
    }

    @Test("If the server fails, the stored response is served (RFC 5861)")
    func staleOnError() async throws {
        let server = try LoopbackServer.start { request in
            request.number == 0
                ? LoopbackReply(fields: [("Cache-Control", "max-age=0, stale-if-error=600")], body: "old")
                : LoopbackReply(500, body: "broken")
        }
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: .inMemory())
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        #expect(try await client.get(server.url()).text == "old")
        #expect(try await client.get(server.url()).text == "old")
        #expect(server.requests.count == 2)
    }

    @Test("Requests that do not match are sent as without a pipeline")
    func unmatched() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "plain") }
        let transport = ScriptedTransport([.respond(body: "piped")], repeatsLastStep: true)
        let pipeline = Pipeline(transport: transport)
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline, matching: { $0.url?.path == "/ours" })
        #expect(try await client.get(server.url("/theirs")).text == "plain")
        #expect(try await client.get(server.url("/ours")).text == "piped")
        #expect(server.requests.map(\.path) == ["/theirs"])
        #expect(transport.sent.count == 1)
    }

    @Test("Redirects are followed inside, and the response has the last URL")
    func redirect() async throws {
        let server = try LoopbackServer.start { request in
            request.path == "/" ? LoopbackReply(302, fields: [("Location", "/there")]) : LoopbackReply(body: "there")
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let (text, head) = try await InterceptedClient(pipeline).get(server.url())
        #expect(text == "there")
        #expect(head.url == server.url("/there"))
        #expect(server.requests.map(\.path) == ["/", "/there"])
    }

    @Test("Statuses, methods and bodies without content arrive unchanged")
    func heads() async throws {
        let server = try LoopbackServer.start { request in
            switch request.path {
            case "/empty": LoopbackReply(204)
            case "/missing": LoopbackReply(404, body: "nothing here")
            default: LoopbackReply(fields: [("X-Method", request.method)], body: "content")
            }
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let empty = try await client.get(server.url("/empty"))
        #expect(empty.text == "")
        #expect(empty.head.statusCode == 204)
        let missing = try await client.get(server.url("/missing"))
        #expect(missing.text == "nothing here")
        #expect(missing.head.statusCode == 404)
        var request = URLRequest(url: server.url())
        request.httpMethod = "HEAD"
        let head = try await client.send(request)
        #expect(head.text == "")
        #expect(head.head.value(forHTTPHeaderField: "X-Method") == "HEAD")
    }

    @Test(
        "A 401 with any challenge is returned with its body, and nothing hangs",
        arguments: [
            "Basic realm=\"x\"", "basic realm=x", "Basic", "Bearer realm=\"x\", Basic realm=\"y\"",
            "Digest realm=\"a\", nonce=\"b\"", "Negotiate, Basic realm=\"x\"", ",Basic realm=\"x\"", "",
        ]
    )
    func unauthorized(_ challenge: String) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(401, fields: [("WWW-Authenticate", challenge)], body: "no")
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let (text, head) = try await InterceptedClient(pipeline).get(server.url())
        #expect(text == "no")
        #expect(head.statusCode == 401)
        #expect(head.value(forHTTPHeaderField: "WWW-Authenticate")?.hasSuffix(challenge) == true)
    }

    @Test("The content of a data task goes through the pipeline, from memory and from a stream")
    func content() async throws {
        let server = try LoopbackServer.start { LoopbackReply(bytes: Array($0.method.utf8) + $0.body) }
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let pipeline = Pipeline(transport: URLSessionTransport(), configuration: configuration)
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        request.httpBody = Data("-bytes".utf8)
        #expect(try await client.send(request).text == "POST-bytes")
        request.httpBody = nil
        request.httpBodyStream = InputStream(data: Data("-stream".utf8))
        #expect(try await client.send(request).text == "POST-stream")
        #expect(recorder.events(.callEnded).count == 2)
    }

    @Test("Failures are URLErrors with the pipeline's own as the underlying error")
    func failures() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(before: [.reset]) }
        let pipeline = Pipeline(transport: URLSessionTransport(), retrierFactory: .backoff(.atOnce))
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline)
        let error = await #expect(throws: URLError.self) { try await client.get(server.url()) }
        #expect(error?.code == .networkConnectionLost)
        #expect(server.requests.count == 4)
    }

    @Test("On Linux a body beyond the limit fails with an error that says so; one within it arrives whole")
    func limit() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(framing: .chunked, steps: [.send("12345"), .send(request.path == "/long" ? "678" : "6")])
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        defer { pipeline.stopIntercepting() }
        let client = InterceptedClient(pipeline, bodyLimit: 6)
        #expect(try await client.get(server.url("/short")).text == "123456")
        #if !canImport(Darwin)
            let error = await #expect(throws: URLError.self) { try await client.get(server.url("/long")) }
            #expect(error?.code == .dataLengthExceedsMaximum)
        #endif
    }
}
