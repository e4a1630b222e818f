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

@Suite("No response passes from one user to another", .timeLimit(.minutes(20)))
struct CachePartitionTests {
    /// Where a user's credentials come from.
    enum Origin: String, CaseIterable, Sendable {
        case requestField, cookieField, sessionField, sessionCookie, authorizationHook, messageHookBelowOthers,
            userinfo, principal
    }

    static let fields: HeaderFields = ["Cache-Control": "max-age=60"]

    @Test("S-T30, D-T23: two users, the same URL, and a stored response", arguments: Origin.allCases)
    func users(_ origin: Origin) async throws {
        let user = Mutex("alice")
        @Sendable func current() -> String { user.withLock { $0 } }
        let transport = ScriptedTransport(
            implicit: { _ in
                switch origin {
                case .sessionField: ["Authorization": "Bearer \(current())"]
                case .sessionCookie: ["Cookie": "id=\(current())"]
                default: [:]
                }
            },
            answering: { _ in .respond(200, Self.fields, body: "for \(current())") }
        )
        var hook = RecordingHook(name: "auth", log: HookLog(), scope: origin == .authorizationHook ? .call : .message)
        hook.schedule = { request, _ in
            if origin == .authorizationHook || origin == .messageHookBelowOthers {
                request.setValue("Bearer \(current())", forHTTPHeaderField: "Authorization")
            }
            return nil
        }
        let bench = CacheBench(transport, hooks: [RecordingHook(name: "other", log: HookLog()), hook])
        func load() async throws -> CacheBench.Answer {
            var request = URLRequest.get(
                origin == .userinfo ? "http://\(current()):pw@h.example/a" : "http://h.example/a"
            )
            var options = CallOptions()
            switch origin {
            case .requestField: request.setValue("Bearer \(current())", forHTTPHeaderField: "authorization")
            case .cookieField: request.setValue("id=\(current())", forHTTPHeaderField: "Cookie")
            case .principal: options.principal = current()
            default: break
            }
            return try await bench.load(request, options)
        }
        #expect(try await load() == .network("for alice"))
        #expect(try await load() == .fresh("for alice"))
        user.withLock { $0 = "bob" }
        #expect(try await load() == .network("for bob"))
        #expect(try await load() == .fresh("for bob"))
        user.withLock { $0 = "alice" }
        #expect(try await load() == .fresh("for alice"))
    }

    @Test("An anonymous caller does not get what a user's request stored, nor the reverse")
    func anonymous() async throws {
        let transport = ScriptedTransport { request in
            .respond(200, Self.fields, body: request.value(forHTTPHeaderField: "Authorization") ?? "nobody")
        }
        let bench = CacheBench(transport)
        #expect(try await bench.load(.get("http://h.example/", ["Authorization": "a"])) == .network("a"))
        #expect(try await bench.load(.get("http://h.example/")) == .network("nobody"))
        #expect(try await bench.load(.get("http://h.example/", ["Authorization": "a"])) == .fresh("a"))
    }

    @Test("An explicit principal keeps its entries when the token is rotated")
    func rotatedToken() async throws {
        let bench = CacheBench([.respond(200, Self.fields, body: "one")])
        var options = CallOptions()
        options.principal = "user 7"
        try await bench.load(.get("http://h.example/", ["Authorization": "old"]), options)
        #expect(try await bench.load(.get("http://h.example/", ["Authorization": "new"]), options) == .fresh("one"))
    }

    @Test("Law 3: if a prepare step changes the principal, the response is not stored")
    func preparedPrincipal() async throws {
        let transport = ScriptedTransport([.respond(200, Self.fields, body: "secret")], repeatsLastStep: true)
        let bench = CacheBench(transport) { configuration in
            configuration.prepare = [
                { request, _ in request.setValue("Bearer t", forHTTPHeaderField: "Authorization") }
            ]
        }
        try await bench.load()
        #expect(bench.cache.store.statistics.entryCount == 0)
        #expect(try await bench.load() == .network("secret"))
    }

    @Test(
        "Law 3: an error meant for the principal that a prepare step named reaches no other call",
        arguments: [429, 503]
    )
    func preparedPrincipalError(_ status: Int) async throws {
        let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20))
        let origin = GatedOrigin { request, _ in
            .answer(status, ["Retry-After": "5"], request.value(forHTTPHeaderField: "Authorization") ?? "nobody")
        }
        let calls = ["a", "b"].map { user in
            var configuration = PipelineConfiguration()
            configuration.attemptTimeout = nil
            configuration.prepare = [{ request, _ in request.setValue(user, forHTTPHeaderField: "Authorization") }]
            let pipeline = Pipeline(transport: origin, cache: cache, configuration: configuration)
            return Task { try await pipeline.send(.get()).body.collect() }
        }
        try await origin.asked.wait(for: 1)
        for _ in 0..<100 { await Task.yield() }
        origin.open(2)
        #expect(try await calls[0].value == ByteChunk(copying: "a".utf8))
        #expect(try await calls[1].value == ByteChunk(copying: "b".utf8))
    }

    @Test("If a hook below a manually listed caching hook adds a credential, the response is not stored")
    func hookBelow() async throws {
        let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20))
        var below = RecordingHook(name: "auth", log: HookLog(), scope: .message)
        below.schedule = { request, _ in
            request.setValue("Bearer t", forHTTPHeaderField: "Authorization")
            return nil
        }
        let transport = ScriptedTransport([.respond(200, Self.fields)], repeatsLastStep: true)
        let pipeline = Pipeline(transport: transport, hooks: [CachingHook(cache), below])
        _ = try await pipeline.send(.get()).body.collect()
        #expect(cache.store.statistics.entryCount == 0)
    }

    @Test("In shared mode an authorized response is stored for all only if it says so (RFC 9111 §3.5)")
    func sharedMode() async throws {
        let transport = ScriptedTransport { request in
            let fields: HeaderFields =
                request.url?.path == "/public"
                ? ["Cache-Control": "public, max-age=60"] : ["Cache-Control": "max-age=60"]
            return .respond(200, fields, body: request.value(forHTTPHeaderField: "Authorization") ?? "nobody")
        }
        let bench = CacheBench(transport, mode: .shared)
        try await bench.load(.get("http://h.example/public", ["Authorization": "a"]))
        #expect(try await bench.load(.get("http://h.example/public", ["Authorization": "b"])) == .fresh("a"))
        #expect(try await bench.load(.get("http://h.example/public")) == .fresh("a"))
        try await bench.load(.get("http://h.example/own", ["Authorization": "a"]))
        #expect(try await bench.load(.get("http://h.example/own", ["Authorization": "a"])) == .network("a"))
        #expect(try await bench.load(.get("http://h.example/own", ["Authorization": "b"])) == .network("b"))
    }

    @Test("In shared mode an explicit principal or userinfo keeps users apart too, unless the response is released")
    func sharedPrincipals() async throws {
        let transport = ScriptedTransport { request in
            let control = request.url?.path == "/public" ? "public, max-age=60" : "max-age=60"
            return .respond(200, ["Cache-Control": control], body: "x")
        }
        let bench = CacheBench(transport, mode: .shared)
        func load(_ user: String, _ path: String, byUserinfo: Bool = false) async throws -> ResponseSource {
            var options = CallOptions()
            if !byUserinfo { options.principal = user }
            let host = byUserinfo ? "\(user):pw@h.example" : "h.example"
            return try await bench.load(.get("http://\(host)\(path)"), options).source
        }
        for byUserinfo in [false, true] {
            let path = byUserinfo ? "/u" : "/p"
            #expect(try await load("alice", path, byUserinfo: byUserinfo) == .network(attempts: 1))
            #expect(try await load("bob", path, byUserinfo: byUserinfo) == .network(attempts: 1))
            #expect(try await load("alice", path, byUserinfo: byUserinfo) == .fresh)
        }
        #expect(try await load("alice", "/public") == .network(attempts: 1))
        #expect(try await load("bob", "/public") == .fresh)
    }

    @Test("In shared mode fields that a qualified private names are neither stored nor freshened (RFC 9111 §5.2.2.7)")
    func qualifiedPrivate() async throws {
        let fields: HeaderFields = [
            "Cache-Control": "public, max-age=10, private=\"Set-Cookie\"", "Set-Cookie": "sid=alice", "ETag": "\"v\"",
        ]
        let bench = CacheBench(
            ScriptedTransport([.respond(200, fields, body: "x"), .respond(304, fields)]),
            mode: .shared
        )
        try await bench.load()
        #expect(try await bench.pipeline.send(.get()).fields["Set-Cookie"] == nil)
        bench.clock.advance(by: .seconds(20))
        try await bench.load()
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh)
        #expect(response.fields["Set-Cookie"] == nil)
    }

    @Test("A Host field that names another authority than the URL bypasses the cache (RFC 9110 §7.2)")
    func hostField() async throws {
        let transport = ScriptedTransport { request in
            .respond(200, Self.fields, body: request.value(forHTTPHeaderField: "Host") ?? "own")
        }
        let bench = CacheBench(transport)
        #expect(try await bench.load(.get("http://h.example/", ["Host": "one.example"])).body == "one.example")
        #expect(try await bench.load(.get("http://h.example/", ["Host": "two.example"])).body == "two.example")
        #expect(try await bench.load(.get("http://h.example/", ["Host": "H.example:80"])) == .network("H.example:80"))
        #expect(try await bench.load(.get("http://h.example/")) == .fresh("H.example:80"))
    }

    /// lysine-dev/okhttp#3087, #1605, #2903
    @Test("No credential appears in a key or in metadata")
    func nothingInClear() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Authorization, Cookie"]
        let bench = CacheBench([.respond(200, fields, body: "one")], store: store)
        try await bench.load(
            .get("http://user:sesame@h.example/", ["Authorization": "Bearer sesame", "Cookie": "k=sesame"])
        )
        let found = Mutex(0)
        _ = try await store.purge(
            .matching { entry in
                for bytes in [entry.key.bytes, entry.variant.bytes, entry.description.metadata.array] {
                    if String(decoding: bytes, as: UTF8.self).contains("sesame") { found.withLock { $0 += 1 } }
                }
                return true
            },
            now: StoreInstant(milliseconds: 0)
        )
        #expect(found.withLock { $0 } == 0)
    }
}
