// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("A cache above another pipeline", .timeLimit(.minutes(20)))
struct NestedPipelineTests {
    static let fields: HeaderFields = ["Cache-Control": "max-age=60"]

    enum Secret: String, CaseIterable, Sendable {
        case hook, prepare, innerCacheToo
    }

    @Test(
        "Credentials that an inner hook or prepare step adds keep users apart in the outer cache",
        arguments: Secret.allCases
    )
    func innerCredentials(_ secret: Secret) async throws {
        let isBob = SharedFlag()
        let transport = ScriptedTransport { request in
            .respond(200, Self.fields, body: request.value(forHTTPHeaderField: "Authorization") ?? "")
        }
        var hook = RecordingHook(name: "auth", log: HookLog(), scope: .message)
        hook.schedule = { request, _ in
            request.setValue(isBob.isSet ? "bob" : "alice", forHTTPHeaderField: "Authorization")
            return nil
        }
        var configuration = PipelineConfiguration()
        if secret == .prepare {
            configuration.prepare = [
                { request, _ in request.setValue(isBob.isSet ? "bob" : "alice", forHTTPHeaderField: "Authorization") }
            ]
        }
        let inner = Pipeline(
            transport: transport,
            cache: secret == .innerCacheToo ? .inMemory() : nil,
            hooks: secret == .prepare ? [] : [hook],
            configuration: configuration
        )
        let outer = Pipeline(transport: inner, cache: .inMemory())
        var seen: [String] = []
        for user in [false, false, true, true, false] {
            isBob.set(user)
            seen.append(String(decoding: try await outer.data(for: .get()).0, as: UTF8.self))
        }
        #expect(seen == ["alice", "alice", "bob", "bob", "alice"])
    }

    @Test("A response made by an inner hook is not stored by the outer cache")
    func innerAnswer() async throws {
        var hook = RecordingHook(name: "answers", log: HookLog())
        hook.schedule = { _, _ in Response(status: .ok, fields: Self.fields, body: ResponseBody(ByteChunk([1]))) }
        let inner = Pipeline(transport: ScriptedTransport([]), hooks: [hook])
        let cache = HTTPCache.inMemory()
        _ = try await Pipeline(transport: inner, cache: cache).data(for: .get())
        #expect(cache.store.statistics.entryCount == 0)
    }

    @Test("A plain inner pipeline is a transport like any other: its responses are stored")
    func plainInner() async throws {
        let transport = ScriptedTransport([.respond(200, Self.fields, body: "x")])
        let outer = Pipeline(transport: Pipeline(transport: transport), cache: .inMemory())
        for _ in 0..<2 { #expect(try await outer.data(for: .get()).0 == Data("x".utf8)) }
        #expect(transport.sent.count == 1)
    }

    @Test("Law 4: the inner pipeline returns redirects, so the outer one keys and stores each hop")
    func redirects() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport { request in
            request.url?.path == "/a"
                ? .respond(301, ["Location": "/b", "Cache-Control": "max-age=60"])
                : .respond(200, ["Cache-Control": "max-age=600"], body: "end")
        }
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let outer = Pipeline(
            transport: Pipeline(transport: transport, configuration: configuration),
            cache: .inMemory(),
            configuration: configuration
        )
        _ = try await outer.data(for: .get())
        clock.advance(by: .seconds(120))
        let (data, response) = try await outer.data(for: .get())
        #expect(data == Data("end".utf8))
        #expect(response.url?.path == "/b")
        #expect(transport.sent.map { $0.request.url?.path } == ["/a", "/b", "/a"])
    }

    @Test("A fallback from a hook below the cache is not stored as the origin's response")
    func fallbackBelow() async throws {
        let cache = HTTPCache.inMemory()
        var rescuing = RecordingHook(name: "rescue", log: HookLog(), scope: .message)
        rescuing.failure = { _ in Response(status: .ok, fields: Self.fields, body: ResponseBody(ByteChunk([1]))) }
        let pipeline = Pipeline(
            transport: ScriptedTransport([.fail(progress: .bodySent)]),
            hooks: [CachingHook(cache), rescuing]
        )
        _ = try await pipeline.send(.get())
        #expect(cache.store.statistics.entryCount == 0)
    }
}
