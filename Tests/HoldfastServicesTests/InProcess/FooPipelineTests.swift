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

private struct FooApi: HttpService {
    var apiUrl: any UrlConvertible { "pmapi/foo" }
    var usesSecureProtocol: Bool { false }
}

private struct Bar: Request {
    typealias Result = String
    let part: URLRequest
    var routes: HttpRoute { ["bar"] }
    var header: HttpHeader { HttpHeader(part.allHTTPHeaderFields ?? [:]) }
}

@Suite("The service foo below a pipeline, with cache and retries", .timeLimit(.minutes(20)))
struct FooPipelineTests {
    private let calls = CountWatch()

    private func pipeline(_ router: ServiceRouter) -> Pipeline {
        Pipeline(transport: router, cache: .inMemory(), retrierFactory: .default, configuration: configuration)
    }

    private var configuration: PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        configuration.attemptTimeout = nil
        return configuration
    }

    @Test("P-T2, P-T24: a 503 with a description is retried, the answer is streamed, stored, and served from the store")
    func retriedAndStored() async throws {
        let request = try Foo.request { [calls] _, response, responseReturn, dataReturn, complete in
            calls.increment()
            guard calls.count > 1 else {
                return Foo.respondWithErrorStatus(
                    503,
                    "Come back later.",
                    dataReturn,
                    response,
                    responseReturn,
                    complete
                )
            }
            let fields = ["Cache-Control": "max-age=60", "Content-Type": "text/plain"]
            responseReturn(Foo.createResponse(.ok, response: response, responseHeaders: fields))
            Task {
                dataReturn(Data("foo, "))
                await Task.yield()
                dataReturn(Data("streamed"))
                complete()
            }
        }
        let pipeline = pipeline(ServiceRouter(types: [Foo.self]))
        let first = try await pipeline.send(request)
        #expect(first.source == .inProcess)
        #expect(first.attempts.map(\.status) == [503, 200])
        #expect(try await first.body.data() == Data("foo, streamed"))
        await pipeline.drain()
        let second = try await pipeline.send(request)
        #expect(second.source == .fresh)
        #expect(try await second.body.data() == Data("foo, streamed"))
        #expect(calls.count == 2)
    }

    @Test("P-T10: a service that drops its closures once is called again, like a server that hangs up")
    func forgetfulOnce() async throws {
        let request = try Foo.request { [calls] _, response, responseReturn, _, complete in
            calls.increment()
            guard calls.count > 1 else { return }
            responseReturn(response)
            complete()
        }
        let response = try await pipeline(ServiceRouter(types: [Foo.self])).send(request)
        #expect(response.status == .ok)
        #expect(response.attempts.map(\.errorCode) == [.protocolError, nil])
    }

    @Test("A 304 from the service freshens the stored response")
    func revalidated() async throws {
        let request = try Foo.request { [calls] request, response, responseReturn, dataReturn, complete in
            calls.increment()
            let fields = ["ETag": "\"1\"", "Cache-Control": "no-cache"]
            if request.value(forHTTPHeaderField: "If-None-Match") == "\"1\"" {
                responseReturn(Foo.createResponse(304, response: response, responseHeaders: fields))
            } else {
                responseReturn(Foo.createResponse(.ok, response: response, responseHeaders: fields))
                dataReturn(Data("foo"))
            }
            complete()
        }
        let pipeline = pipeline(ServiceRouter(types: [Foo.self]))
        #expect(try await pipeline.send(request).body.data() == Data("foo"))
        await pipeline.drain()
        let second = try await pipeline.send(request)
        #expect(second.source == .revalidated)
        #expect(try await second.body.data() == Data("foo"))
        #expect(calls.count == 2)
    }

    @Test("A typed client calls it like any API, and shows what cache and retrier did")
    func typed() async throws {
        let part = try Foo.request { [calls] request, response, responseReturn, dataReturn, complete in
            calls.increment()
            guard calls.count > 1 else { return Foo.respondWithErrorStatus(503, response, responseReturn, complete) }
            responseReturn(
                Foo.createResponse(.ok, response: response, responseHeaders: ["Cache-Control": "max-age=60"])
            )
            dataReturn(Data(request.url?.absoluteString ?? ""))
            complete()
        }
        let client = ServiceClient(
            FooApi(),
            transport: ServiceRouter(types: [Foo.self]),
            cache: .inMemory(),
            retrierFactory: .default,
            configuration: configuration
        )
        let first = try await client.response(to: Bar(part: part))
        #expect(first.value == "http://pmapi/foo/bar")
        #expect(first.response.attempts.count == 2)
        let second = try await client.response(to: Bar(part: part))
        #expect(second.value == first.value)
        #expect(second.response.source == .fresh)
        #expect(second.response.cacheDecision != nil)
        #expect(calls.count == 2)
    }

    @Test("A service that never answers is ended by the attempt timeout and called again")
    func silent() async throws {
        let kept = Mutex<[requestCompleteBlock]>([])
        let clock = ManualClock()
        let request = try Foo.request { [calls] _, response, responseReturn, _, complete in
            calls.increment()
            guard calls.count == 1 else {
                responseReturn(response)
                return complete()
            }
            kept.withLock { $0.append(complete) }
        }
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = .seconds(5)
        let pipeline = Pipeline(
            transport: ServiceRouter(types: [Foo.self]),
            retrierFactory: .default,
            configuration: configuration
        )
        let call = Task { try await pipeline.send(request) }
        try await calls.wait(for: 1)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(5))
        try await clock.waitForSleeps(2)
        clock.advance(by: .seconds(60))
        let response = try await call.value
        #expect(response.attempts.map(\.errorCode) == [.timeout, nil])
        #expect(calls.count == 2)
    }
}
