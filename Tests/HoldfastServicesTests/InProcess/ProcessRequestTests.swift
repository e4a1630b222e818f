// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("processRequest and the metrics of each call", .timeLimit(.minutes(20)))
struct ProcessRequestTests {
    /// A router whose service `s` answers with what it was asked.
    private func mirror(_ apiHostname: String = "pmapi", scheme: String = "http") -> ServiceRouter {
        let service = AnyInProcessService("s") { request, body in
            guard case .bytes(let bytes) = body.form else {
                return Response(status: .ok, fields: ["X-URL": request.url?.absoluteString ?? ""])
            }
            var response = Response(status: .ok, body: ResponseBody(bytes))
            response.fields["X-URL"] = request.url?.absoluteString
            response.fields["X-Method"] = request.httpMethod
            return response
        }
        return ServiceRouter(apiHostname: apiHostname, scheme: scheme, services: [service])
    }

    @Test("P-T27: identifier, path with query, method and data make one request")
    func whole() async throws {
        let response = try await mirror().processRequest(
            serviceId: "s",
            extraPath: "a/b?q=1&r=2",
            method: "PUT",
            data: Data("content")
        )
        #expect(response.fields["X-URL"] == "http://pmapi/s/a/b?q=1&r=2")
        #expect(response.fields["X-Method"] == "PUT")
        #expect(try await response.body.data() == Data("content"))
    }

    @Test(
        "P-T28: however the path begins, the URL has no double slash",
        arguments: [
            (nil, "http://pmapi/s"), ("", "http://pmapi/s"), ("/", "http://pmapi/s"), ("a", "http://pmapi/s/a"),
            ("/a", "http://pmapi/s/a"), ("//a/b/", "http://pmapi/s/a/b/"), ("?q=1", "http://pmapi/s?q=1"),
            ("foo/bar?some=query", "http://pmapi/s/foo/bar?some=query"),
        ]
    )
    func extraPath(_ path: String?, url: String) async throws {
        let router = mirror()
        #expect(try await router.processRequest(serviceId: "s", extraPath: path).fields["X-URL"] == url)
        let other = try await router.processRequest(serviceId: "s", extraPath: path, method: .get, data: nil)
        #expect(other.fields["X-URL"] == url)
    }

    @Test("Host and scheme are the router's, and an identifier is percent-encoded")
    func hostAndScheme() async throws {
        let router = mirror("Local.Example", scheme: "https")
        #expect(try await router.processRequest(serviceId: "s").fields["X-URL"] == "https://local.example/s")
        #expect(router.register(AnyInProcessService("a b?") { _, _ in Response(status: .noContent) }))
        #expect(try await router.processRequest(serviceId: "a b?", extraPath: "x").status == .noContent)
        let error = await #expect(throws: ServiceError.self) { try await router.processRequest(serviceId: "") }
        #expect(error?.code == .badRequest)
    }

    @Test("Through a pipeline, cache, hooks and retrier take part")
    func throughPipeline() async throws {
        let calls = CountWatch()
        let service = AnyInProcessService("s") { _, _ in
            calls.increment()
            return Response(status: .ok, fields: ["Cache-Control": "max-age=60"])
        }
        let router = ServiceRouter(services: [service])
        let pipeline = Pipeline(transport: router, cache: .inMemory())
        let first = try await router.processRequest(serviceId: "s", through: pipeline)
        _ = try await first.body.collect()
        #expect(try await router.processRequest(serviceId: "s", through: pipeline).source == .fresh)
        #expect(calls.count == 1)
    }

    @Test(
        "Metrics have path, query, method, bytes in both directions and the time by the call's clock, once the body ended"
    )
    func metrics() async throws {
        let foo = FooRouter()
        let clock = ManualClock()
        var request = try Foo.request("http://user:secret@pmapi/foo/a%20b?q=1") {
            _,
            response,
            responseReturn,
            dataReturn,
            complete in
            clock.advance(by: .milliseconds(1500))
            responseReturn(Foo.createResponse(.created, response: response))
            dataReturn(Data("12345"))
            dataReturn(Data("678"))
            complete()
        }
        request.httpMethod = "POST"
        request.httpBody = Data("abc")
        _ = try await foo.call(request, clock: clock)
        let metrics = try #require(foo.metrics.first)
        #expect(foo.metrics.count == 1)
        #expect(metrics.serviceIdentifier == "foo")
        #expect(metrics.path == "/foo/a b")
        #expect(metrics.query == "q=1")
        #expect(metrics.method == .post)
        #expect(metrics.bytesSent == 3)
        #expect(metrics.bytesReceived == 8)
        #expect(metrics.status == 201)
        #expect(metrics.milliseconds == 1500)
        #expect(metrics.error == nil)
    }

    @Test("A failed call, and one whose body was dropped, are reported once")
    func metricsOfFailures() async throws {
        let foo = FooRouter()
        _ = await foo.failure { _, _, _, _, complete in complete() }
        #expect(foo.metrics.count == 1)
        #expect((foo.metrics.first?.error as? ServiceError)?.code == .protocolError)
        #expect(foo.metrics.first?.status == nil)
        let gate = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            dataReturn(Data("1234"))
            Task {
                try await gate.wait(for: 1)
                complete()
            }
        }
        do {
            let response = try await foo.router.processRequest(request)
            var body = response.body.makeAsyncIterator()
            #expect(try await body.next()?.count == 4)
            response.body.discard()
        }
        gate.increment()
        #expect(foo.metrics.count == 2)
        #expect(foo.metrics.last?.bytesReceived == 4)
        #expect(foo.metrics.last?.status == .ok)
    }

    @Test("Metrics reach the pipeline's observers as an event, without query and credentials")
    func event() async throws {
        let recorder = EventRecorder()
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        configuration.clock = clock
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(transport: ServiceRouter(types: [Foo.self]), configuration: configuration)
        let request = try Foo.request("http://user:secret@pmapi/foo/bar?token=hidden") {
            _,
            response,
            responseReturn,
            dataReturn,
            complete in
            clock.advance(by: .seconds(2))
            responseReturn(response)
            dataReturn(Data("1234"))
            complete()
        }
        _ = try await pipeline.send(request).body.collect()
        let event = try #require(recorder.events(.serviceAnswered).first)
        #expect(recorder.events(.serviceAnswered).count == 1)
        #expect(event.detail == "GET /foo/bar")
        #expect(event.bytes == 4)
        #expect(event.status == .ok)
        #expect(event.source == .inProcess)
        #expect(event.delay == .seconds(2))
        #expect(event.attempt == 1)
    }
}
