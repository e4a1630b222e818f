// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Fields declared as credentials separate users like Authorization", .timeLimit(.minutes(20)))
struct CredentialFieldTests {
    private static let url = "http://h.example/a"
    private static let fields: HeaderFields = ["Cache-Control": "max-age=60"]

    private static var naming: CallOptions {
        var options = CallOptions()
        options.credentialFields = ["x-api-key", "X-Tenant"]
        return options
    }

    private static func key(_ key: String?, adding fields: [String: String] = [:]) -> URLRequest {
        var request = URLRequest.get(url, fields)
        request.setValue(key, forHTTPHeaderField: "X-API-Key")
        return request
    }

    /// An origin that tells each caller its own key.
    private static func echo(_ fields: HeaderFields = fields, implicit key: String? = nil) -> ScriptedTransport {
        ScriptedTransport(
            implicit: { _ in key.map { ["X-API-Key": $0] } ?? [:] },
            answering: { .respond(200, fields, body: $0.value(forHTTPHeaderField: "X-API-Key") ?? key ?? "nobody") }
        )
    }

    @Test(
        "S-T30: two users with different keys never share an entry, nor does a user with anonymous callers",
        arguments: [CacheOptions.Mode.private, .shared]
    )
    func users(_ mode: CacheOptions.Mode) async throws {
        let bench = CacheBench(Self.echo(), mode: mode)
        let keys: [String?] = ["alice", "bob", nil]
        for key in keys {
            #expect(try await bench.load(Self.key(key), Self.naming) == .network(key ?? "nobody"))
        }
        for key in keys {
            #expect(try await bench.load(Self.key(key), Self.naming) == .fresh(key ?? "nobody"))
        }
        // Each named field counts, and one that is named and absent does not. Of a shared cache such a request is answered from
        // what an anonymous one got, as one with Authorization is.
        let tenant = Self.key("alice", adding: ["X-Tenant": "t"])
        let authorized = Self.key("alice", adding: ["Authorization": "a"])
        for request in [tenant, authorized] {
            let expected: CacheBench.Answer = mode == .private ? .network("alice") : .fresh("nobody")
            #expect(try await bench.load(request, Self.naming) == expected)
        }
        // Without the caller's word such a field is like any other.
        #expect(try await bench.load(Self.key("carol")) == .fresh("nobody"))
    }

    @Test("In shared mode a `public` response is shared, as with Authorization (RFC 9111 §3.5)")
    func shared() async throws {
        let bench = CacheBench(Self.echo(["Cache-Control": "public, max-age=60"]), mode: .shared)
        try await bench.load(Self.key("alice"), Self.naming)
        #expect(try await bench.load(Self.key("bob"), Self.naming) == .fresh("alice"))
        #expect(try await bench.load(Self.key(nil), Self.naming) == .fresh("alice"))
    }

    @Test("An anonymous entry is used for a Cookie, but not for a Cookie beside a key")
    func borrowing() async throws {
        let bench = CacheBench(Self.echo())
        try await bench.load(Self.key(nil), Self.naming)
        let cookie = ["Cookie": "id=1"]
        #expect(try await bench.load(Self.key(nil, adding: cookie), Self.naming) == .fresh("nobody"))
        #expect(try await bench.load(Self.key("alice", adding: cookie), Self.naming) == .network("alice"))
    }

    @Test("A key that the transport adds below the hooks counts, and an explicit principal overrides everything")
    func implicitAndExplicit() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let alice = CacheBench(Self.echo(implicit: "alice"), store: store)
        let bob = CacheBench(Self.echo(implicit: "bob"), store: store)
        try await alice.load(Self.key(nil), Self.naming)
        #expect(try await bob.load(Self.key(nil), Self.naming) == .network("bob"))
        #expect(try await alice.load(Self.key(nil), Self.naming) == .fresh("alice"))
        var options = Self.naming
        options.principal = "7"
        #expect(try await alice.load(Self.key("old"), options) == .network("old"))
        #expect(try await bob.load(Self.key("new"), options) == .fresh("old"))
    }

    @Test("Law 3: if the request was sent with another key than looked up, nothing is stored")
    func prepared() async throws {
        let bench = CacheBench(Self.echo()) { configuration in
            configuration.prepare = [{ request, _ in request.setValue("late", forHTTPHeaderField: "X-API-Key") }]
        }
        for _ in 0..<2 {
            let response = try await bench.pipeline.send(Self.key("early"), options: Self.naming)
            #expect(response.cacheDecision?.storage == .notStored(.otherPrincipal))
        }
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("Law 3: a revalidation for another key freshens nothing of this one's")
    func preparedValidation() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\""]
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "If-None-Match") == nil
                ? .respond(200, fields, body: "x") : .respond(304, fields)
        }
        let plain = CacheBench(transport, store: store)
        let other = CacheBench(transport, store: store, clock: plain.clock) { configuration in
            configuration.prepare = [{ request, _ in request.setValue("late", forHTTPHeaderField: "X-API-Key") }]
        }
        try await plain.load(Self.key("early"), Self.naming)
        plain.clock.advance(by: .seconds(61))
        try await other.load(Self.key("early"), Self.naming)
        #expect(try await plain.load(Self.key("early"), Self.naming) == .revalidated("x"))
    }

    @Test("Calls with different keys never share a fetch; calls with the same key do", arguments: [200, 429, 503])
    func fetches(_ status: Int) async throws {
        let origin = GatedOrigin { request, _ in
            .answer(status, Self.fields, request.value(forHTTPHeaderField: "X-API-Key") ?? "nobody")
        }
        var configuration = PipelineConfiguration()
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(transport: origin, cache: .inMemory(), configuration: configuration)
        let keys = ["alice", "bob", "alice", "bob", "alice"]
        let calls = keys.map { key in
            Task { try await pipeline.send(Self.key(key), options: Self.naming).body.collect() }
        }
        try await origin.asked.wait(for: 2)
        for _ in 0..<100 { await Task.yield() }
        origin.open(5)
        for (key, call) in zip(keys, calls) {
            #expect(try await call.value == ByteChunk(copying: key.utf8))
        }
        if status == 200 { #expect(origin.asked.count == 2) }
    }

    @Test("A redirect to another origin drops the field, so its response is stored as anonymous")
    func redirect() async throws {
        let transport = ScriptedTransport { request in
            request.url?.host() == "h.example"
                ? .respond(302, ["Location": "http://other.example/"])
                : .respond(200, Self.fields, body: request.value(forHTTPHeaderField: "X-API-Key") ?? "nobody")
        }
        let bench = CacheBench(transport)
        #expect(try await bench.load(Self.key("alice"), Self.naming) == .network("nobody"))
        #expect(try await bench.load(.get("http://other.example/"), Self.naming) == .fresh("nobody"))
        var direct = Self.key("alice")
        direct.url = URL(string: "http://other.example/")
        #expect(try await bench.load(direct, Self.naming) == .network("alice"))
    }

    @Test("One user's entries can be removed by that user's key")
    func removing() async throws {
        let bench = CacheBench(Self.echo())
        for key in ["alice", "bob"] { try await bench.load(Self.key(key), Self.naming) }
        let named = Self.naming.credentialFields
        try await bench.cache.remove(.principal(of: Self.key("alice")))
        #expect(bench.cache.store.statistics.entryCount == 2)
        try await bench.cache.remove(.principal(of: Self.key("alice"), credentialFields: named))
        #expect(try await bench.load(Self.key("bob"), Self.naming) == .fresh("bob"))
        #expect(try await bench.load(Self.key("alice"), Self.naming) == .network("alice"))
    }

    @Test("A key that Vary nominates is kept as a digest: used for selection, never stored or shown")
    func nominated() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "X-API-Key"]
        let bench = CacheBench(Self.echo(fields))
        var options = Self.naming
        options.principal = "7"
        for key in ["s3cret-a", "s3cret-b"] {
            #expect(try await bench.load(Self.key(key), options) == .network(key))
            #expect(try await bench.load(Self.key(key), options) == .fresh(key))
        }
        var seen = 0
        for try await info in bench.cache.entries(now: bench.clock.timestamp) {
            #expect(info.nominated.map(\.description) == ["x-api-key: (hidden)"])
            #expect(!String(decoding: info.variant.bytes, as: UTF8.self).contains("s3cret"))
            seen += 1
        }
        #expect(seen == 2)
    }

    @Test("A gate that a server closes for one key stays open for others")
    func gates() async throws {
        let transport = ScriptedTransport { request in
            request.value(forHTTPHeaderField: "X-API-Key") == "alice"
                ? .respond(429, ["Retry-After": "61"]) : .respond(200)
        }
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock()
        let pipeline = Pipeline(transport: transport, retrierFactory: .backoff(.never), configuration: configuration)
        _ = try await pipeline.send(Self.key("alice"), options: Self.naming)
        #expect(try await pipeline.send(Self.key("bob"), options: Self.naming).status == .ok)
        await #expect(throws: ServiceError.self) {
            try await pipeline.send(Self.key("alice"), options: Self.naming)
        }
    }

    @Test("RFC 9111 §3.5: in shared mode must-revalidate releases from Authorization, not from a key beside it")
    func keyBesideAuthorization() async throws {
        let bench = CacheBench(Self.echo(["Cache-Control": "max-age=60, must-revalidate"]), mode: .shared)
        let app = ["Authorization": "Bearer app"]
        #expect(try await bench.load(Self.key("alice", adding: app), Self.naming) == .network("alice"))
        #expect(try await bench.load(Self.key("bob", adding: app), Self.naming) == .network("bob"))
        #expect(try await bench.load(Self.key("alice", adding: app), Self.naming) == .fresh("alice"))
    }
}
