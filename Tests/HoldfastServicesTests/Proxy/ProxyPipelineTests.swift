// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A proxy on the pipeline", .timeLimit(.minutes(20)))
struct ProxyPipelineTests {
    private static let fresh: HeaderFields = ["Content-Type": "application/json", "Cache-Control": "max-age=60"]

    @Test("E-T28: a 503 is retried once, and the same call is then answered from the cache")
    func retryThenHit() async throws {
        let scripted = try ScriptedProxy(
            [.respond(503), .respond(200, ProxyPipelineTests.fresh, body: "[0,1,1,2,3]")],
            cache: .inMemory(),
            retrierFactory: .default
        )
        let first: DecodedResponse<[Int]> = try await scripted.proxy.response(
            .get,
            path: "test/fibonacci",
            arguments: ["count": 5]
        )
        #expect(first.value == [0, 1, 1, 2, 3])
        #expect(first.response.source == .network(attempts: 2))
        #expect(first.response.attempts.map(\.status) == [503, 200])
        let second: DecodedResponse<[Int]> = try await scripted.proxy.response(
            .get,
            path: "test/fibonacci",
            arguments: ["count": 5]
        )
        #expect(second.value == [0, 1, 1, 2, 3])
        #expect(second.response.source == .fresh)
        #expect(second.response.cacheDecision != nil)
        #expect(scripted.transport.sent.count == 2)
    }

    @Test("E-T28: when all attempts fail, the error is the WebServiceError of the last one")
    func allFail() async throws {
        let scripted = try ScriptedProxy(
            [.respond(503, ["Content-Type": "text/plain"], body: "busy")],
            repeatsLastStep: true,
            cache: .inMemory(),
            retrierFactory: .default
        )
        let error = await #expect(throws: WebServiceError.self) {
            let _: [Int] = try await scripted.proxy.invoke(.get, path: "a")
        }
        #expect(error?.statusCode == 503)
        #expect(error?.localizedDescription == "busy")
        #expect(error?.response?.attempts.count == scripted.transport.sent.count)
        #expect(scripted.transport.sent.count == 4)
    }

    @Test("Content that does not decode is not stored, so the next call asks the service again")
    func undecodable() async throws {
        let scripted = try ScriptedProxy(
            [
                .respond(200, ProxyPipelineTests.fresh, body: "oops"),
                .respond(200, ProxyPipelineTests.fresh, body: "[1]"),
            ],
            cache: .inMemory()
        )
        await #expect(throws: DecodingError.self) {
            let _: [Int] = try await scripted.proxy.invoke(.get, path: "a")
        }
        #expect(try await scripted.proxy.invoke(.get, path: "a") == [1])
        #expect(try await scripted.proxy.invoke(.get, path: "a") == [1])
        #expect(scripted.transport.sent.count == 2)
    }

    @Test("Headers go with each call, a copy's with the copy's, and both share one cache partitioned by credentials")
    func headers() async throws {
        let scripted = try ScriptedProxy(
            [
                .respond(200, ProxyPipelineTests.fresh, body: "[1]"),
                .respond(200, ProxyPipelineTests.fresh, body: "[2]"),
            ],
            cache: .inMemory()
        )
        let anna = scripted.proxy.with(headers: ["Authorization": "Bearer a", "X-Client": "1"])
        let bert = anna.with(headers: ["authorization": "Bearer b"])
        #expect(try await anna.invoke(.get, path: "me") == [1])
        #expect(try await bert.invoke(.get, path: "me") == [2])
        #expect(scripted.field("Authorization") == "Bearer b")
        #expect(scripted.field("X-Client") == "1")
        #expect(try await anna.invoke(.get, path: "me") == [1])
        #expect(try await bert.invoke(.get, path: "me") == [2])
        #expect(scripted.transport.sent.count == 2)
        #expect(scripted.proxy.headers.isEmpty)
    }

    @Test("Options go with each call: a reload ignores what is stored")
    func options() async throws {
        let scripted = try ScriptedProxy(
            [
                .respond(200, ProxyPipelineTests.fresh, body: "[1]"),
                .respond(200, ProxyPipelineTests.fresh, body: "[2]"),
            ],
            cache: .inMemory()
        )
        #expect(try await scripted.proxy.invoke(.get, path: "a") == [1])
        var reloading = scripted.proxy
        reloading.options.cache.reload = true
        #expect(try await reloading.invoke(.get, path: "a") == [2])
    }

    @Test("Hooks see requests and results, once for each call")
    func hooks() async throws {
        let hook = RecordingRequestHook()
        let scripted = try ScriptedProxy(
            [.respond(503), .respond(200), .respond(404)],
            retrierFactory: .default,
            requestHooks: [hook]
        )
        try await scripted.proxy.invoke(.get, path: "a")
        await #expect(throws: WebServiceError.self) { try await scripted.proxy.invoke(.get, path: "a") }
        #expect(hook.scheduled == 2)
        #expect(hook.successes == 1)
        #expect(hook.failures == ["unacceptable-status"])
    }

    @Test(
        "E17: every method, PATCH, HEAD and custom ones included",
        arguments: [.get, .post, .put, .delete, .patch, .head, "PURGE"] as [WebServiceProxy.Method]
    )
    func methods(method: WebServiceProxy.Method) async throws {
        let scripted = try ScriptedProxy([.respond(204)])
        try await scripted.proxy.invoke(method, path: "a", arguments: ["n": 1])
        #expect(scripted.transport.sent.first?.request.httpMethod == method.rawValue)
        #expect(scripted.urls == ["https://h/api/a?n=1"])
    }

    @Test("The other forms also say how a call went")
    func responses() async throws {
        let scripted = try ScriptedProxy([.respond(201, ["Location": "/7"], body: "7")], repeatsLastStep: true)
        let plain = try await scripted.proxy.response(.post, path: "a", content: Data("x".utf8))
        #expect(plain.response.fields["Location"] == "/7")
        let sent = try await scripted.proxy.response(.post, path: "a", body: 1)
        #expect(sent.response.status == 201)
        let both: DecodedResponse<Int> = try await scripted.proxy.response(.post, path: "a", body: 1)
        #expect(both.value == 7)
        #expect(both.urlRequest.httpMethod == "POST")
        let handled = try await scripted.proxy.response(.get, path: "a") { content, _ in content.count }
        #expect(handled.value == 1)
    }
}
