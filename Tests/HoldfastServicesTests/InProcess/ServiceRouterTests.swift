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

@Suite("ServiceRouter", .timeLimit(.minutes(20)))
struct ServiceRouterTests {
    private func request(_ text: String) throws -> URLRequest {
        URLRequest(url: try #require(URL(string: text)))
    }

    private func echo(_ identifier: String) -> AnyInProcessService {
        AnyInProcessService(identifier) { request, body in
            guard case .bytes(let bytes) = body.form else {
                return Response(
                    status: .ok,
                    fields: ["X-URL": request.url?.absoluteString ?? ""],
                    body: ResponseBody(ByteChunk(copying: identifier.utf8))
                )
            }
            return Response(status: .ok, body: ResponseBody(bytes))
        }
    }

    private func send(_ request: URLRequest, to router: ServiceRouter, body: RequestBody = .none) async throws
        -> Response
    {
        try await router.send(request, body: body, context: CallContext())
    }

    @Test("P-T1: the service of the first path component gets exactly that request")
    func routed() async throws {
        let response = try await send(
            try request("http://pmapi/foo/bar?x=1"),
            to: ServiceRouter(services: [echo("foo")])
        )
        #expect(response.fields["X-URL"] == "http://pmapi/foo/bar?x=1")
        #expect(response.source == .inProcess)
        #expect(response.url?.absoluteString == "http://pmapi/foo/bar?x=1")
    }

    @Test(
        "P-T16, P-T18, P-T19: unknown, missing, encoded and differently cased identifiers",
        arguments: [
            ("http://pmapi/nobody", 404), ("http://pmapi/", 404), ("http://pmapi//foo", 200),
            ("http://pmapi/fo%6F", 200),
            ("http://pmapi/FOO", 404), ("http://PMAPI/foo", 200),
        ]
    )
    func identifiers(_ text: String, status: Int) async throws {
        let response = try await send(try request(text), to: ServiceRouter(services: [echo("foo")]))
        #expect(response.status.rawValue == status)
    }

    @Test("P-T17: another host goes to the next transport, or fails with an error that says so")
    func otherHost() async throws {
        let next = ScriptedTransport([.respond(204)], implicit: { _ in ["X-Implicit": "1"] })
        let router = ServiceRouter(services: [echo("foo")], next: next)
        let other = try request("http://api.example.com/foo")
        #expect(try await send(other, to: router).status.rawValue == 204)
        #expect(router.implicitFields(for: other)["X-Implicit"] == "1")
        #expect(router.implicitFields(for: try request("http://pmapi/foo")).isEmpty)
        do {
            _ = try await send(other, to: ServiceRouter())
            Issue.record("an error was expected")
        } catch let error as ServiceError {
            #expect(error.code == .resolve)
            #expect(error.progress == .notSent)
        }
    }

    @Test("P-T12, P-T13: the first of two with one identifier stays; unregistering an unknown service has no effect")
    func registering() async throws {
        let router = ServiceRouter()
        #expect(router.register(AnyInProcessService("foo") { _, _ in Response(status: .ok) }))
        #expect(!router.register(AnyInProcessService("foo") { _, _ in Response(status: .noContent) }))
        router.unregister("stranger")
        #expect(try await send(try request("http://pmapi/foo"), to: router).status == .ok)
        router.unregister("foo")
        #expect(try await send(try request("http://pmapi/foo"), to: router).status == .notFound)
    }

    @Test("P-T11: concurrent calls do not mix their bodies")
    func concurrent() async throws {
        let router = ServiceRouter(services: [echo("foo")])
        let request = try request("http://pmapi/foo")
        try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for index in 0..<50 {
                group.addTask {
                    let body = RequestBody.bytes(ByteChunk(copying: "\(index)".utf8))
                    let response = try await router.send(request, body: body, context: CallContext())
                    return (index, String(decoding: try await response.body.collect(), as: UTF8.self))
                }
            }
            for try await (index, text) in group { #expect(text == "\(index)") }
        }
    }

    @Test("P-T15: a call in flight finishes after its service was unregistered")
    func unregisteredInFlight() async throws {
        let entered = CountWatch()
        let gate = CountWatch()
        let router = ServiceRouter(services: [
            AnyInProcessService("foo") { _, _ in
                entered.increment()
                try await gate.wait(for: 1)
                return Response(status: .ok)
            }
        ])
        let request = try request("http://pmapi/foo")
        let call = Task { try await router.send(request, body: .none, context: CallContext()) }
        try await entered.wait(for: 1)
        router.unregister("foo")
        gate.increment()
        #expect(try await call.value.status == .ok)
    }

    @Test("Below a pipeline, a service is cached and retried like any origin")
    func underPipeline() async throws {
        let calls = CountWatch()
        let router = ServiceRouter(services: [
            AnyInProcessService("foo") { _, _ in
                calls.increment()
                if calls.count == 1 { throw ServiceError(.connectionLost, "dropped", progress: .bodySent) }
                return Response(
                    status: .ok,
                    fields: ["Cache-Control": "max-age=60"],
                    body: ResponseBody(ByteChunk([1]))
                )
            }
        ])
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(
            transport: router,
            cache: HTTPCache(store: MemoryStore(capacity: 1 << 16)),
            retrierFactory: .backoff(),
            configuration: configuration
        )
        let first = try await pipeline.send(try request("http://pmapi/foo"))
        #expect(first.source == .inProcess)
        #expect(first.attempts.count == 2)
        #expect(try await pipeline.send(try request("http://pmapi/foo")).source == .fresh)
        #expect(calls.count == 2)
    }
}
