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

@Suite("Answering from the store and storing", .timeLimit(.minutes(20)))
struct CachingHookTests {
    @Test("S-T27: a fresh response is answered from the store without a send, with its Age")
    func freshHit() async throws {
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60", "X-A": "1"], body: "one")])
        #expect(try await bench.load() == .network("one"))
        bench.clock.advance(by: .seconds(25))
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh)
        #expect(response.fields["Age"] == "25")
        #expect(response.fields["X-A"] == "1")
        #expect(response.url == URLRequest.get().url)
        #expect(try await response.body.collect() == ByteChunk(copying: "one".utf8))
        #expect(bench.sends == 1)
    }

    @Test("A URL that cannot be a key bypasses the cache, and the response says so")
    func noKey() async throws {
        let bench = CacheBench([.respond(200, body: "one")])
        let response = try await bench.pipeline.send(.get("ftp://origin.example/a"))
        #expect(response.cacheDecision?.outcome == .bypass)
        #expect(response.cacheDecision?.reason == .target)
        #expect(bench.cache.statistics.bypasses == 1)
    }

    @Test("Law 2, S-T7: the lookup ends before sending starts, however slow the store is")
    func slowLookUp() async throws {
        let store = FaultyStore()
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60"], body: "one")], store: store)
        try await bench.load()
        store.stallsLookUps.store(true, ordering: .relaxed)
        let call = Task { try await bench.load() }
        try await store.lookUps.wait(for: 1)
        #expect(bench.sends == 1)
        store.gate.increment()
        #expect(try await call.value == .fresh("one"))
        #expect(bench.sends == 1)
    }

    @Test("A stale response is revalidated by its entity tag, and a 304 freshens it without a new body")
    func revalidation() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=10", "ETag": "\"v1\"", "X-A": "old"], body: "one"),
            .respond(304, ["Cache-Control": "max-age=100", "ETag": "\"v1\"", "X-A": "new"]),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        let response = try await bench.pipeline.send(.get())
        #expect(response.status == .ok)
        #expect(response.source == .revalidated)
        #expect(response.fields["X-A"] == "new")
        #expect(try await response.body.collect() == ByteChunk(copying: "one".utf8))
        #expect(bench.sent("If-None-Match") == [nil, "\"v1\""])
        bench.clock.advance(by: .seconds(50))
        #expect(try await bench.load() == .fresh("one"))
        #expect(bench.sends == 2)
        #expect(bench.cache.store.statistics.entriesWritten == 1)
    }

    @Test("Last-Modified is used for validation if there is no entity tag")
    func lastModified() async throws {
        let date = "Tue, 14 Nov 2023 22:13:00 GMT"
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "no-cache", "Last-Modified": date], body: "one"),
            .respond(304),
        ])
        try await bench.load()
        #expect(try await bench.load() == .revalidated("one"))
        #expect(bench.sent("If-Modified-Since") == [nil, date])
    }

    @Test("A validation that brings a new representation replaces the old one")
    func replaced() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=0", "ETag": "\"v1\""], body: "one"),
            .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"v2\""], body: "two"),
        ])
        try await bench.load()
        #expect(try await bench.load() == .network("two"))
        #expect(try await bench.load() == .fresh("two"))
        #expect(bench.cache.store.statistics.entryCount == 1)
    }

    @Test(
        "A response that may not be stored is not",
        arguments: [
            ("GET", 200, ["Cache-Control": "no-store"]), ("GET", 200, ["Cache-Control": "max-age=60", "Vary": "*"]),
            ("POST", 200, ["Cache-Control": "max-age=60"]), ("PUT", 200, ["Cache-Control": "max-age=60"]),
            ("DELETE", 200, ["Cache-Control": "max-age=60"]), ("PATCH", 200, ["Cache-Control": "max-age=60"]),
            ("GET", 206, ["Cache-Control": "max-age=60", "Content-Range": "bytes 0-2/9"]), ("GET", 500, [:]),
        ] as [(String, Int, HeaderFields)]
    )
    func notStored(method: String, status: Int, fields: HeaderFields) async throws {
        // S-T29 for the methods.
        let bench = CacheBench(ScriptedTransport([.respond(status, fields, body: "one")], repeatsLastStep: true))
        try await bench.load(.request(method, "http://origin.example/a"))
        try await bench.load(.request(method, "http://origin.example/a"))
        #expect(bench.sends == 2)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test(
        "s-maxage counts only in shared mode, and private is for private caches",
        arguments: [CacheOptions.Mode.private, .shared]
    )
    func modes(_ mode: CacheOptions.Mode) async throws {
        let transport = ScriptedTransport { request in
            request.url?.path == "/s"
                ? .respond(200, ["Cache-Control": "max-age=10, s-maxage=100"])
                : .respond(200, ["Cache-Control": "private, max-age=10"])
        }
        let bench = CacheBench(transport, mode: mode)
        try await bench.load(.get("http://h.example/s"))
        try await bench.load(.get("http://h.example/p"))
        bench.clock.advance(by: .seconds(5))
        try await bench.load(.get("http://h.example/p"))
        #expect(bench.sends == (mode == .private ? 2 : 3))
        bench.clock.advance(by: .seconds(20))
        try await bench.load(.get("http://h.example/s"))
        #expect(bench.sends == 3)
    }

    @Test("Vary: several variants of one URI are kept and chosen (RFC 9111 §4.1)")
    func variants() async throws {
        let transport = ScriptedTransport { request in
            let language = request.value(forHTTPHeaderField: "Accept-Language") ?? "none"
            return .respond(200, ["Cache-Control": "max-age=60", "Vary": "Accept-Language"], body: language)
        }
        let bench = CacheBench(transport)
        let languages = ["de", "en", "fr", "it", "es", "pt", "sv", "ja"]
        for language in languages {
            #expect(
                try await bench.load(.get("http://h.example/", ["Accept-Language": language])) == .network(language)
            )
        }
        for language in languages {
            #expect(try await bench.load(.get("http://h.example/", ["Accept-Language": language])) == .fresh(language))
        }
        #expect(try await bench.load(.get("http://h.example/")) == .network("none"))
        #expect(try await bench.load(.get("http://h.example/")) == .fresh("none"))
    }

    @Test("HEAD is answered from a stored GET, without its body (RFC 9111 §4)")
    func head() async throws {
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60", "Content-Length": "3"], body: "one")])
        try await bench.load()
        let response = try await bench.pipeline.send(.request("HEAD", "http://origin.example/a"))
        #expect(response.source == .fresh)
        #expect(response.fields["Content-Length"] == "3")
        #expect(response.body.length == 0)
    }

    @Test("A 404 with a lifetime is stored, like any status")
    func negative() async throws {
        let bench = CacheBench([.respond(404, ["Cache-Control": "max-age=60"], body: "no")])
        #expect(try await bench.load() == .network("no", 404))
        #expect(try await bench.load() == .fresh("no", 404))
    }

    @Test("S-T31: spellings of one URI are one entry, and field names ignore case")
    func equalKeys() async throws {
        let bench = CacheBench([.respond(200, ["cache-control": "max-age=60"], body: "one")])
        try await bench.load(.get("https://HOST.example:443/%7Ea/./b#fragment"))
        for spelling in [
            "https://host.example/~a/b", "https://host.example/x/../%7ea/b", "https://host.example:/~a/b#c",
        ] {
            #expect(try await bench.load(.get(spelling)) == .fresh("one"))
        }
    }

    @Test("S-T32: different requests have separate entries")
    func differentKeys() async throws {
        let transport = ScriptedTransport { request in
            .respond(200, ["Cache-Control": "max-age=60"], body: request.url?.absoluteString ?? "")
        }
        let bench = CacheBench(transport)
        let spellings = ["?a=1&a=2", "?a=2&a=1", "?n", "?n=", "?v=%2B", "?v=+", "?page=1", "?page=2", "", "?"]
        for spelling in spellings { try await bench.load(.get("http://h.example/a\(spelling)")) }
        for spelling in spellings {
            let url = "http://h.example/a\(spelling)"
            #expect(try await bench.load(.get(url)) == .fresh(url))
        }
        #expect(bench.sends == spellings.count)
    }

    @Test("S-T35: with many concurrent calls for one URL every caller gets the whole body, and the counts add up")
    func concurrent() async throws {
        let transport = ScriptedTransport { _ in
            .stream(200, ["Cache-Control": "max-age=60"], chunks: ["on", "e"], length: 3)
        }
        let bench = CacheBench(transport)
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await bench.load().body } }
            for try await body in group { #expect(body == "one") }
        }
        let counted = bench.cache.statistics
        #expect(counted.requests == 100)
        #expect(counted.hits + counted.misses + counted.collapsed == 100)
        #expect(counted.misses == 1)
        #expect(counted.misses == bench.sends)
        #expect(bench.cache.store.statistics.entryCount == 1)
        #expect(try await bench.load() == .fresh("one"))
    }

    @Test("RFC 9111 §4.3.2: a caller's own condition is answered from the store, or passes through with its 304")
    func callersCondition() async throws {
        let bench = CacheBench([
            .respond(304), .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"v1\""], body: "one"),
        ])
        let request = URLRequest.get("http://origin.example/a", ["If-None-Match": "\"v1\""])
        #expect(try await bench.load(request) == .network("", 304))
        try await bench.load()
        #expect(try await bench.load(request) == .fresh("", 304))
        #expect(try await bench.load() == .fresh("one"))
        #expect(bench.sends == 2)
    }

    @Test(
        "An error that has only a validator is not stored, and displaces nothing",
        arguments: [500, 503, 302, 307, 403, 429]
    )
    func errorsWithValidators(_ status: Int) async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=0", "ETag": "\"good\""], body: "good"),
            .respond(status, ["ETag": "\"error\""], body: "error"), .respond(304, ["ETag": "\"good\""]),
        ])
        try await bench.load()
        try await bench.load()
        #expect(try await bench.load() == .revalidated("good"))
    }

    @Test("A GET with content is neither looked up nor stored, because its key does not include the content")
    func content() async throws {
        let bench = CacheBench(
            ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "x")], repeatsLastStep: true)
        )
        for _ in 0..<2 { _ = try await bench.pipeline.send(.get(), body: .bytes(ByteChunk([1]))).body.collect() }
        #expect(bench.sends == 2)
        #expect(bench.cache.statistics.bypasses == 2)
        #expect(bench.cache.store.statistics.entryCount == 0)
        _ = try await bench.pipeline.send(.get(), body: .bytes(ByteChunk())).body.collect()
        #expect(bench.cache.store.statistics.entryCount == 1)
    }

    @Test("An invalid method does not count as GET")
    func invalidMethod() async throws {
        let bench = CacheBench(
            ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "x")], repeatsLastStep: true)
        )
        for _ in 0..<2 { try await bench.load(.request("DO IT", "http://origin.example/a")) }
        #expect(bench.sends == 2)
    }

    @Test("RFC 9530 §2: a HEAD from a stored GET has no digest of the GET's content")
    func headDigest() async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "Content-Digest": "sha-256=:AA==:", "Repr-Digest": "sha-256=:AA==:",
        ]
        let bench = CacheBench([.respond(200, fields, body: "one")])
        try await bench.load()
        let response = try await bench.pipeline.send(.request("HEAD", "http://origin.example/a"))
        #expect(response.source == .fresh)
        #expect(!response.fields.contains("Content-Digest") && response.fields.contains("Repr-Digest"))
    }
}
