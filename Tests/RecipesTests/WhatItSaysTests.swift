// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What responses, events, reports and errors say of a call is what happened.
@Suite("The first day: what it says is true", .timeLimit(.minutes(20)))
struct WhatItSaysTests {
    private func request(_ path: String = "/a?token=SECRET") throws -> URLRequest {
        URLRequest(url: try #require(URL(string: "http://user:SECRET@origin.example\(path)")))
    }

    @Test("A hook's response is synthesized, from onSchedule and from onFailure, and the event says so")
    func hookAnswers() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let client = Pipeline(
            transport: ScriptedTransport([.fail(progress: .notSent)]),
            hooks: [
                .closures(
                    onSchedule: { request, _ in request.url?.path == "/ping" ? Response(status: .ok) : nil },
                    onFailure: { _, _, _ in Response(status: .ok) }
                )
            ],
            configuration: configuration
        )
        #expect(try await client.send(request("/ping")).source == .synthesized)
        #expect(try await client.send(request("/other")).source == .synthesized)
        let ends = recorder.events.filter { $0.name == .callEnded }
        #expect(ends.map(\.source) == [.synthesized, .synthesized])
    }

    @Test("What a hook fetched with another pipeline, or a transport declares itself, keeps its source")
    func hookFetches() async throws {
        let inner = Pipeline(transport: ScriptedTransport([.respond()]))
        let client = Pipeline(
            transport: ScriptedTransport([]),
            hooks: [.closures(onSchedule: { request, _ in try await inner.send(request) })]
        )
        #expect(try await client.send(request()).source == .network(attempts: 1))
        let stored = Pipeline(
            transport: ScriptedTransport([]),
            hooks: [.closures(onSchedule: { _, _ in Response(status: .ok, source: .fresh) })]
        )
        #expect(try await stored.send(request()).source == .fresh)
    }

    @Test("A response is stored, is being stored, or is not, and always says the right one")
    func storing() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=60"], body: "whole"),
            .stream(200, ["Cache-Control": "max-age=60"], chunks: ["a", "b"]),
            .stream(200, ["Cache-Control": "max-age=60"], chunks: ["a", "b"], length: 2),
        ])
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: transport, cache: cache)
        let whole = try await client.send(request("/whole"))
        #expect(whole.cacheDecision?.storage == .stored)
        #expect(whole.cacheDecision.map { "\($0)" } == "miss: not-stored (RFC 9111 §4); stored")
        #expect(cache.statistics.stored == 1)

        // The length is not known, so nobody can say how much is missing of what is dropped.
        let dropped = try await client.send(request("/dropped"))
        #expect(dropped.cacheDecision?.storage == .storing)
        dropped.body.discard()
        await client.drain()
        #expect(cache.statistics.stored == 1)

        let small = try await client.send(request("/small"))
        #expect(small.cacheDecision.map { "\($0)" } == "miss: not-stored (RFC 9111 §4); storing")
        small.body.discard()
        await client.drain()
        #expect(cache.statistics.stored == 2)
    }

    @Test("If the store fails, the response does not say that it is stored")
    func notStored() async throws {
        let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "x")])
        let cache = HTTPCache.inMemory()
        await cache.close()
        let response = try await Pipeline(transport: transport, cache: cache).send(request())
        #expect(response.cacheDecision?.storage == .notStored(.storeFailure))
    }

    @Test("A response that is too large names the limit, and the limit can be set")
    func tooLarge() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=60"], body: String(repeating: "x", count: 5000))
        ])
        let cache = HTTPCache.inMemory(entryLimit: 4096)
        let response = try await Pipeline(transport: transport, cache: cache).send(request())
        #expect(response.cacheDecision?.storage == .notStored(.tooLarge))
        #expect(
            response.cacheDecision.map { "\($0)" }
                == "miss: not-stored (RFC 9111 §4); not stored: too-large (limit: 4096 bytes)"
        )
    }

    @Test("A prefetched 404 is not available, and is among the failed requests, stored or not")
    func prefetch() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=60"], body: "x"),
            .respond(404, ["Cache-Control": "max-age=60"], body: "x"), .respond(500),
            .fail(progress: .notSent),
        ])
        let client = Pipeline(transport: transport, cache: .inMemory())
        let requests = try ["/a", "/b", "/c", "/d"].map { try request($0) }
        let report = await client.prefetch(requests, concurrency: 1)
        #expect(report.items.map(\.status) == [.ok, .notFound, .internalServerError, nil])
        #expect(report.storedCount == 2)
        #expect(report.availableCount == 1)
        #expect(report.failedRequests.map { $0.url?.path } == ["/b", "/c", "/d"])
        let again = await client.prefetch([requests[0], requests[1]])
        #expect(again.availableCount == 1 && again.failedRequests.count == 1)
    }

    @Test("An event prints as one line with method, URL without credentials, status, source and reason")
    func eventText() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let transport = ScriptedTransport([.respond(503), .respond(200, ["Cache-Control": "max-age=60"], body: "x")])
        let client = Pipeline(
            transport: transport,
            cache: .inMemory(),
            retrierFactory: .backoff(base: .zero),
            configuration: configuration
        )
        _ = try await client.data(for: request())
        let lines = recorder.events.map { "\($0)" }
        for line in lines {
            #expect(line.contains("GET http://origin.example/a?token=REDACTED"), "\(line)")
            #expect(!line.contains("SECRET") && !line.contains("\n") && !line.contains("unknown context"), "\(line)")
        }
        #expect(lines.contains { $0.hasPrefix("retry-scheduled") && $0.contains("status 503") })
        let end = try #require(lines.last { $0.hasPrefix("call-ended") })
        #expect(end.contains("status 200") && end.contains("from network(attempts: 2)"))
        #expect(end.contains("not-stored (RFC 9111 §4)"))
    }

    @Test("An error says which call failed, without credentials, no matter who threw it")
    func errorNamesCall() async throws {
        var options = CallOptions()
        options.acceptance = .successful
        let transport = ScriptedTransport([
            .respond(500), .fail(progress: .notSent),
            .stream(chunks: ["x"], failure: ServiceError(.connectionLost, "It broke.")),
        ])
        let client = Pipeline(transport: transport)
        for _ in 1...2 {
            let error = await failure { _ = try await client.send(try request(), options: options) }
            let text = try #require(error?.errorDescription)
            #expect(text.hasPrefix("GET http://origin.example/a?token=REDACTED: "), "\(text)")
            #expect(error?.description.hasPrefix(text) == true)
        }
        let broken = await failure { _ = try await client.data(for: try request()) }
        #expect(broken?.errorDescription == "GET http://origin.example/a?token=REDACTED: It broke.")
    }

    @Test("The error of a body that breaks during streaming names its call")
    func brokenStream() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .length(10), steps: [.send("hello"), .close])
        }
        let response = try await Pipeline(transport: URLSessionTransport()).send(
            URLRequest(url: server.url("/a?k=SECRET"))
        )
        let error = await failure { for try await _ in response.body {} }
        #expect(error?.code == .connectionLost)
        #expect(error?.errorDescription?.hasPrefix("GET http://127.0.0.1:\(server.port)/a?k=REDACTED: ") == true)
    }

    @Test("The error for an unacceptable status has its name and what is accepted")
    func unacceptable() async throws {
        var options = CallOptions()
        options.acceptance = .successful
        let client = Pipeline(transport: ScriptedTransport([.respond(404)]))
        let error = await failure { _ = try await client.send(try request("/a"), options: options) }
        #expect(
            error?.message
                == "The server answered 404 Not Found, and this call only accepts 200 to 299. The response is in this error's `response`."
        )
    }

    @Test("Every public error of the library has a description that people can read")
    func localized() throws {
        let rejection = #expect(throws: TargetURI.Rejection.self) { try TargetURI("ftp://x") }
        let rules = #expect(throws: RetryRulesError.self) { try RetryRules(maxAttempts: 0).validate() }
        let errors: [(any Error)?] = [
            rejection, rules, StoreError(.closed, "The store is closed; open a new one."),
            FileSystemError(operation: "open", path: "/x", errno: 2), StreamClosedError(.goingAway),
        ]
        for error in errors {
            let error = try #require(error)
            #expect(error.localizedDescription == (error as? any LocalizedError)?.errorDescription)
            #expect(!error.localizedDescription.contains("could not be completed"), "\(error)")
        }
        #expect(
            FileSystemError(operation: "open", path: "/x", errno: 2).localizedDescription
                == "The system refused open of /x: No such file or directory (errno 2)."
        )
    }

    private struct PlainService: HttpService {
        let apiUrl: any UrlConvertible
    }

    private struct Hello: Request {
        typealias Result = String
        func receive(_ response: inout Response) async throws -> String { "\(response.status)" }
    }

    @Test("http:// in apiUrl is honored, and a TLS error names what turns TLS off")
    func plainHTTP() async throws {
        let transport = ScriptedTransport([.respond(), .fail(.tls, progress: .notSent)])
        _ = try await ServiceClient(PlainService(apiUrl: "http://localhost:8080"), transport: transport)
            .response(to: Hello())
        #expect(transport.sent.first?.request.url?.absoluteString == "http://localhost:8080")
        let client = ServiceClient(PlainService(apiUrl: "localhost:8080"), transport: transport)
        let error = await failure { _ = try await client.response(to: Hello()) }
        #expect(error?.message.contains("usesSecureProtocol") == true)
        #expect(error?.errorDescription?.hasPrefix("GET https://localhost:8080") == true)
    }

    @Test("What a hook writes into httpBody is sent, and what it removes is not")
    func hookContent() async throws {
        let transport = ScriptedTransport([.respond(), .respond(), .respond()])
        let client = Pipeline(
            transport: transport,
            hooks: [
                .closures(onSchedule: { request, _ in
                    switch request.url?.path {
                    case "/sets": request.httpBody = Data("by the hook, and long enough to be kept apart".utf8)
                    case "/clears": request.httpBody = nil
                    default: break
                    }
                    return nil
                })
            ]
        )
        for path in ["/sets", "/clears", "/leaves"] {
            var post = try request(path)
            post.httpMethod = "POST"
            post.httpBody = Data("by the caller".utf8)
            _ = try await client.send(post)
        }
        let bodies = transport.sent.map { $0.body.map { String(decoding: $0.array, as: UTF8.self) } ?? "" }
        #expect(bodies == ["by the hook, and long enough to be kept apart", "", "by the caller"])
    }

    @Test("A timeout that a hook sets applies")
    func hookTimeout() async throws {
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let client = Pipeline(
            transport: ScriptedTransport([.silence]),
            hooks: [
                .closures(onSchedule: { _, context in
                    context.options.timeout = .seconds(3)
                    return nil
                })
            ],
            configuration: configuration
        )
        let call = Task { try await client.send(try request()) }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(3))
        let error = await failure { _ = try await call.value }
        #expect(error?.code == .deadlineExceeded)
    }
}
