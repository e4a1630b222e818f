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

@Suite("What a 304 can do", .timeLimit(.minutes(20)))
struct ValidationTests {
    @Test("After a 304 that selects nothing offered, the request is sent again without conditions (RFC 9111 §4.3.3)")
    func foreignTag() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=0", "ETag": "\"a\""], body: "old"),
            .respond(304, ["ETag": "\"other\""]),
            .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"other\""], body: "new"),
        ])
        try await bench.load()
        let response = try await bench.pipeline.send(.get())
        #expect(try await response.body.collect() == ByteChunk(copying: "new".utf8))
        #expect(response.attempts.map(\.status?.rawValue) == [304, 200])
        #expect(bench.sent("If-None-Match") == [nil, "\"a\"", nil])
        #expect(bench.cache.statistics.misses == 2)
        #expect(try await bench.load() == .fresh("new"))
    }

    @Test("A bare 304 to the tags of two variants does not say which one, so the request is sent again")
    func ambiguous() async throws {
        let transport = ScriptedTransport { request in
            if request.value(forHTTPHeaderField: "If-None-Match")?.contains(",") == true { return .respond(304) }
            let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
            var fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"\(language)\""]
            // The second one, which does not vary, answers both requests.
            if language == "fr" { fields["Vary"] = "Accept-Language" }
            return .respond(200, fields, body: language)
        }
        let bench = CacheBench(transport)
        for language in ["fr", "de", "fr"] {
            #expect(try await bench.load(.get("http://h.example/", ["Accept-Language": language])).body == language)
        }
        #expect(bench.sent("If-None-Match") == [nil, nil, "\"de\", \"fr\"", nil])
        #expect(bench.cache.statistics.revalidated == 0)
    }

    @Test("The tags of variants that do not match are not sent, so what comes instead of one of them is stored")
    func unmatchedVariant() async throws {
        let transport = ScriptedTransport { request in
            let tags = request.value(forHTTPHeaderField: "If-None-Match") ?? ""
            // By now it has one representation for all.
            if tags.contains("one") { return .respond(304, ["ETag": "\"one\"", "Vary": "X-A"]) }
            let name = tags.isEmpty ? request.value(forHTTPHeaderField: "X-A") ?? "" : "one"
            return .respond(200, ["Cache-Control": "max-age=10", "ETag": "\"\(name)\"", "Vary": "X-A"], body: name)
        }
        let bench = CacheBench(transport)
        let two = URLRequest.get("http://h.example/", ["X-A": "two"])
        try await bench.load(.get("http://h.example/", ["X-A": "one"]))
        try await bench.load(two)
        bench.clock.advance(by: .seconds(20))
        #expect(try await bench.load(two) == .network("one"))
        #expect(bench.sent("If-None-Match") == [nil, nil, "\"two\""])
        #expect(try await bench.load(two) == .fresh("one"))
    }

    @Test("A 304 for a stored error is no failure: the error is confirmed like any other response")
    func storedError() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=10, stale-if-error=1000", "ETag": "\"e\""]
        let bench = CacheBench([
            .respond(500, fields, body: "no"), .respond(304, ["Cache-Control": "max-age=100", "ETag": "\"e\""]),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(50))
        #expect(try await bench.load() == .init(status: 500, body: "no", source: .revalidated))
        #expect(bench.cache.statistics.revalidated == 1 && bench.cache.statistics.staleOnError == 0)
        #expect(try await bench.load() == .fresh("no", 500))
    }

    @Test("A 304 that names another variant's tag selects that variant")
    func otherVariant() async throws {
        let transport = ScriptedTransport { request in
            if request.value(forHTTPHeaderField: "If-None-Match") != nil { return .respond(304, ["ETag": "\"same\""]) }
            return .respond(200, ["Cache-Control": "max-age=0", "Vary": "Accept", "ETag": "\"same\""], body: "same")
        }
        let bench = CacheBench(transport)
        try await bench.load(.get("http://h.example/", ["Accept": "a/a"]))
        #expect(try await bench.load(.get("http://h.example/", ["Accept": "a/a"])) == .revalidated("same"))
    }

    @Test("A server that answers 304 without any condition causes an error that says so")
    func without() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=0", "ETag": "\"a\""], body: "old"),
            .respond(304, ["ETag": "\"other\""]), .respond(304, ["ETag": "\"other\""]),
        ])
        try await bench.load()
        await #expect {
            try await bench.load()
        } throws: {
            ($0 as? ServiceError)?.code == .protocolError
        }
    }

    @Test("If the selected variant cannot be read, no other is offered in its place")
    func unreadable() async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            ScriptedTransport(
                [.respond(200, ["Cache-Control": "max-age=0", "ETag": "\"a\""], body: "x")],
                repeatsLastStep: true
            ),
            store: store
        )
        try await bench.load()
        store.fault.withLock { $0 = .body }
        #expect(try await bench.load() == .network("x"))
        #expect(bench.sent("If-None-Match") == [nil, nil])
    }

    @Test("A revalidated response that the acceptance refuses is removed, although it was freshened meanwhile")
    func refusedAfterFreshening() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "no-cache", "ETag": "\"a\""], body: "bad"),
            .respond(304, ["ETag": "\"a\""]), .respond(503),
        ])
        try await bench.load()
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw Refused(reason: "bad") }
        await #expect(throws: Refused(reason: "bad")) { try await bench.load(.get(), options) }
        #expect(bench.sends == 3)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    /// nodejs/undici#5505
    @Test("A freshened response is as old as its validation, not as its body")
    func ageAfterValidation() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=100", "ETag": "\"v\""], body: "one"), .respond(304),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(150))
        #expect(try await bench.load() == .revalidated("one"))
        bench.clock.advance(by: .seconds(99))
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh)
        #expect(response.fields["Age"] == "99")
    }

    @Test("Vary on conditional fields compares the caller's own conditions, of which there are none")
    func varyOnConditions() async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=0", "ETag": "\"a\"", "Vary": "If-None-Match, If-Modified-Since",
        ]
        let newer: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"b\"", "Vary": "If-None-Match, If-Modified-Since",
        ]
        let bench = CacheBench([.respond(200, fields, body: "old"), .respond(200, newer, body: "new")])
        try await bench.load()
        try await bench.load()
        #expect(try await bench.load() == .fresh("new"))
    }

    @Test("Law 3: a 304 to another principal's request does not update this one's entry")
    func otherPrincipal() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=0", "ETag": "\"a\"", "X-For": "alice"], body: "one"),
            .respond(304, ["ETag": "\"a\"", "Cache-Control": "max-age=60", "X-For": "bob"]),
            .respond(304, ["ETag": "\"a\""]),
        ])
        let switched = SharedFlag()
        let bench = CacheBench(transport) { configuration in
            configuration.prepare = [
                { request, _ in if switched.isSet { request.setValue("bob", forHTTPHeaderField: "Authorization") } }
            ]
        }
        let request = URLRequest.get("http://h.example/", ["Authorization": "alice"])
        try await bench.load(request)
        switched.set(true)
        try await bench.load(request)
        switched.set(false)
        let response = try await bench.pipeline.send(request)
        #expect(response.source == .revalidated)
        #expect(response.fields["X-For"] == "alice")
    }

    @Test("A decoded response is stored decoded: no Content-Encoding, no Content-Length, a weak tag")
    func decoded() async throws {
        let transport = DecodingTransport(
            inner: ScriptedTransport([
                .respond(
                    200,
                    [
                        "Cache-Control": "max-age=60", "Content-Encoding": "gzip", "Content-Length": "3",
                        "ETag": "\"v\"",
                    ],
                    body: "decoded"
                )
            ])
        )
        let cache = HTTPCache.inMemory()
        let pipeline = Pipeline(transport: transport, cache: cache)
        _ = try await pipeline.send(.get())
        let response = try await pipeline.send(.get())
        #expect(response.source == .fresh)
        #expect(response.contentDecoded)
        #expect(response.fields["Content-Encoding"] == nil)
        #expect(response.fields["Content-Length"] == nil)
        #expect(try await response.body.collect() == ByteChunk(copying: "decoded".utf8))
    }

    @Test("A HEAD's 200 freshens what it matches and removes what it does not (RFC 9111 §4.3.5)")
    func headUpdates() async throws {
        let tagged: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"a\""]
        let bench = CacheBench([
            .respond(200, tagged, body: "one"),
            .respond(200, ["Cache-Control": "max-age=100", "ETag": "\"a\"", "X-New": "1"]),
            .respond(200, ["Cache-Control": "max-age=100", "ETag": "\"b\""]),
            .respond(200, tagged, body: "two"),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        let head = URLRequest.request("HEAD", "http://origin.example/a")
        try await bench.load(head)
        let freshened = try await bench.pipeline.send(.get())
        #expect(freshened.source == .fresh)
        #expect(freshened.fields["X-New"] == "1")
        var reload = CallOptions()
        reload.cache = .reload
        try await bench.load(head, reload)
        #expect(try await bench.load() == .network("two"))
    }

    @Test("RFC 9110 §15.4.5: no date is sent for a stored response other than a success", arguments: [404, 410])
    func errorByDate(_ status: Int) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=10", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]
        let bench = CacheBench([.respond(status, fields, body: "no"), .respond(200, [:], body: "here")])
        try await bench.load()
        bench.clock.advance(by: .seconds(50))
        #expect(try await bench.load() == .network("here"))
        #expect(bench.sent("If-Modified-Since") == [nil, nil])
    }

    @Test("A call that leaves while its 304 is being stored costs nobody the stored response")
    func leavingDuringUpdate() async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            [
                .respond(200, ["Cache-Control": "max-age=10", "ETag": "\"a\""], body: "one"),
                .respond(304, ["Cache-Control": "max-age=100", "ETag": "\"a\""]),
            ],
            store: store
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(50))
        store.obeysCancellation.store(true, ordering: .relaxed)
        let (begun, left) = (CountWatch(), CountWatch())
        store.beforeReplacing.withLock { step in
            step = {
                begun.increment()
                try? await left.wait(for: 1)
            }
        }
        let call = Task { try await bench.load() }
        try await begun.wait(for: 1)
        call.cancel()
        _ = await call.result
        left.increment()
        await bench.pipeline.drain()
        #expect(try await bench.load().source == .fresh)
    }

    @Test("If the fields of a 304 cannot be stored, the former ones are not used any more (RFC 9111 §4.3.4)")
    func unwrittenUpdate() async throws {
        let store = FaultyStore()
        let bench = CacheBench(
            [
                .respond(200, ["Cache-Control": "max-age=100", "ETag": "\"a\""], body: "one"),
                .respond(304, ["Cache-Control": "no-cache", "ETag": "\"a\""]),
                .respond(200, ["Cache-Control": "max-age=100", "ETag": "\"b\""], body: "two"),
            ],
            store: store
        )
        try await bench.load()
        var options = CallOptions()
        options.cache = .revalidate
        store.fault.withLock { $0 = .replace }
        #expect(try await bench.load(.get(), options) == .revalidated("one"))
        store.fault.withLock { $0 = nil }
        #expect(try await bench.load() == .network("two"))
    }
}

/// Says of every response that its content coding was undone.
private struct DecodingTransport: Transport {
    let inner: ScriptedTransport

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await inner.send(request, body: body, context: context)
        response.contentDecoded = true
        return response
    }
}

/// A flag that a test turns while closures look at it.
final class SharedFlag: Sendable {
    private let value = Mutex(false)

    var isSet: Bool { value.withLock { $0 } }

    func set(_ isSet: Bool) {
        value.withLock { $0 = isSet }
    }
}
