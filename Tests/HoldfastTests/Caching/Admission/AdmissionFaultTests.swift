// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each of these let a response of one request reach another that it was not for.
@Suite("An update is stored for the same users as a 200 would be", .timeLimit(.minutes(20)))
struct AdmissionFaultTests {
    private static let alice: [String: String] = ["Cookie": "sid=ALICE"]

    /// An origin that answers the numbered requests in turn; the last answer is repeated.
    private static func bench(
        mode: CacheOptions.Mode = .shared,
        _ steps: [ScriptedTransport.Step]
    ) -> CacheBench {
        CacheBench(ScriptedTransport(steps, repeatsLastStep: true), mode: mode)
    }

    private static func fields(_ response: Response) -> HeaderFields { response.fields }

    // MARK: Of one user in what all are given

    enum Way: String, CaseIterable, Sendable {
        case privateCookie, cookie, authorization, background
    }

    @Test(
        "RFC 9111 §3.5, §4.3.4, §5.2.2.7: a user's 304 changes nothing in the shared entry",
        arguments: Way.allCases
    )
    func notModified(_ way: Way) async throws {
        let isBackground = way == .background
        let stale = isBackground ? "max-age=1, stale-while-revalidate=60" : "max-age=1"
        let update = way == .privateCookie || isBackground ? "private, max-age=60" : "max-age=60"
        let bench = Self.bench([
            .respond(200, ["Cache-Control": stale, "ETag": "\"v\""], body: "page"),
            .respond(304, ["Cache-Control": update, "ETag": "\"v\"", "Set-Cookie": "sid=ALICE"]),
            .respond(304, ["ETag": "\"v\""]),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(2))
        let credential = way == .authorization ? ["Authorization": "Bearer ALICE"] : Self.alice
        let own = try await bench.pipeline.send(.get("http://origin.example/a", credential))
        #expect(try await own.body.collect() == ByteChunk(copying: "page".utf8))
        await bench.pipeline.drain()
        if !isBackground { #expect(own.fields.contains("Set-Cookie")) }
        let sends = bench.sends
        let guest = try await bench.pipeline.send(.get())
        _ = try await guest.body.collect()
        #expect(!guest.fields.contains("Set-Cookie"), "\(guest.fields)")
        #expect(guest.source != .fresh && bench.sends == sends + (isBackground ? 0 : 1))
    }

    @Test("RFC 9111 §4.3.5: a user's HEAD changes nothing in the shared entry", arguments: ["private, ", ""])
    func head(_ more: String) async throws {
        let bench = Self.bench([
            .respond(200, ["Cache-Control": "max-age=1", "ETag": "\"v\""], body: "page"),
            .respond(200, ["Cache-Control": "\(more)max-age=60", "ETag": "\"v\"", "Set-Cookie": "sid=ALICE"]),
            .respond(304, ["ETag": "\"v\""]),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(2))
        var request = URLRequest.get("http://origin.example/a", Self.alice)
        request.httpMethod = "HEAD"
        try await bench.load(request, reloading)
        let guest = try await bench.pipeline.send(.get())
        _ = try await guest.body.collect()
        #expect(!guest.fields.contains("Set-Cookie"))
        #expect(bench.sends == 3)
    }

    private var reloading: CallOptions {
        var options = CallOptions()
        options.cache = .reload
        return options
    }

    @Test("The 304 for a shared response brings no user's cookie to all, unless the 304 says that it is for all")
    func cookieOfOne() async throws {
        for isReleased in [false, true] {
            var update: HeaderFields = ["ETag": "\"v\"", "Set-Cookie": "sid=ALICE"]
            if isReleased { update[.cacheControl] = "public, max-age=60" }
            let bench = Self.bench([
                .respond(200, ["Cache-Control": "public, max-age=1", "ETag": "\"v\""], body: "page"),
                .respond(304, update), .respond(304, ["ETag": "\"v\""]),
            ])
            try await bench.load()
            bench.clock.advance(by: .seconds(2))
            try await bench.load(.get("http://origin.example/a", Self.alice))
            let guest = try await bench.pipeline.send(.get())
            _ = try await guest.body.collect()
            #expect(guest.fields.contains("Set-Cookie") == isReleased)
        }
    }

    // MARK: Vary

    enum News: String, CaseIterable, Sendable { case notModified, head }

    @Test(
        "RFC 9111 §4.1, §4.3.4: a Vary in an update applies from then on",
        arguments: News.allCases,
        [CacheOptions.Mode.private, .shared]
    )
    func laterVary(_ news: News, _ mode: CacheOptions.Mode) async throws {
        let transport = ScriptedTransport { request in
            let user = request.value(forHTTPHeaderField: "X-User") ?? "nobody"
            var fields: HeaderFields = ["Cache-Control": "max-age=1", "ETag": "\"\(user)\""]
            if user == "bob" { fields[.vary] = "X-User" }
            if request.httpMethod == "HEAD" || request.value(forHTTPHeaderField: "If-None-Match") == "\"\(user)\"" {
                fields[.vary] = "X-User"
                fields[.cacheControl] = "max-age=60"
                return .respond(request.httpMethod == "HEAD" ? 200 : 304, fields)
            }
            return .respond(200, fields, body: "body of \(user)")
        }
        let bench = CacheBench(transport, mode: mode)
        func get(_ user: String, method: String = "GET") async throws -> CacheBench.Answer {
            var request = URLRequest.get("http://origin.example/a", ["X-User": user])
            request.httpMethod = method
            return try await bench.load(request, method == "HEAD" ? reloading : CallOptions())
        }
        #expect(try await get("alice").body == "body of alice")
        bench.clock.advance(by: .seconds(2))
        _ = try await get("alice", method: news == .head ? "HEAD" : "GET")
        #expect(try await get("bob").body == "body of bob")
        #expect(try await get("alice") == .fresh("body of alice"))
    }

    @Test(
        "RFC 9111 §4.1: after a 304 with `Vary: *` nothing is used without revalidation",
        arguments: [CacheOptions.Mode.private, .shared]
    )
    func laterVaryStar(_ mode: CacheOptions.Mode) async throws {
        let bench = Self.bench(
            mode: mode,
            [
                .respond(200, ["Cache-Control": "max-age=1", "ETag": "\"v\""], body: "page"),
                .respond(304, ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Vary": "*"]),
                .respond(200, ["Cache-Control": "max-age=60", "Vary": "*"], body: "other"),
            ]
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(2))
        #expect(try await bench.load() == .revalidated("page"))
        #expect(try await bench.load() == .network("other"))
    }

    // MARK: The key

    @Test(
        "RFC 9110 §9.3.1: the response to a GET with content answers no other request",
        arguments: ["reload", "condition"]
    )
    func content(_ way: String) async throws {
        let bench = CacheBench(
            .init { _ in .respond(200, ["Cache-Control": "max-age=60"], body: "found") }
        )
        var request = URLRequest.get("http://origin.example/search")
        request.httpBody = Data("secret".utf8)
        if way == "condition" { request.setValue("\"x\"", forHTTPHeaderField: "If-Match") }
        try await bench.load(request, way == "reload" ? reloading : CallOptions())
        #expect(try await bench.load(.get("http://origin.example/search")) == .network("found"))
        #expect(bench.sends == 2)
    }

    @Test("RFC 9111 §5.2.2.5: a 304 with no-store is not stored", arguments: [CacheOptions.Mode.private, .shared])
    func noStore(_ mode: CacheOptions.Mode) async throws {
        let bench = Self.bench(
            mode: mode,
            [
                .respond(200, ["Cache-Control": "max-age=1", "ETag": "\"v\""], body: "page"),
                .respond(304, ["Cache-Control": "no-store, max-age=60", "ETag": "\"v\"", "X-Secret": "s"]),
                .respond(200, ["Cache-Control": "max-age=60"], body: "new"),
            ]
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(2))
        let told = try await bench.pipeline.send(.get())
        #expect(try await told.body.collect() == ByteChunk(copying: "page".utf8))
        #expect(told.cacheDecision?.storage == .notStored(.responseNoStore))
        let next = try await bench.pipeline.send(.get())
        #expect(!next.fields.contains("X-Secret") && bench.sends == 3)
        #expect(bench.cache.store.statistics.entryCount <= 1)
        _ = try await next.body.collect()
    }

    @Test(
        "RFC 3986 §6.2.2: the key is made from what is sent",
        arguments: [
            ("/ugc/x/%2e%2e/%2E%2e/me", "/me"), ("/a/./b/../c", "/a/c"), ("/%6De?q=%7e%c3", "/me?q=~%C3"), ("", ""),
            ("/a?b=/../c", "/a?b=/../c"), ("/a%2Fb?x=%20", "/a%2Fb?x=%20"),
        ]
    )
    func spelling(_ asked: String, _ sent: String) async throws {
        let bench = CacheBench(.init { _ in .respond(200, ["Cache-Control": "max-age=60"], body: "x") })
        for options in [CallOptions(), reloading] {
            try await bench.load(.get("http://u:p@origin.example\(asked)"), options)
            #expect(
                bench.transport.sent.last?.request.url?.absoluteString == "http://u:p@origin.example\(sent)"
            )
        }
    }

    // MARK: Parts

    @Test("RFC 9110 §15.3.7.3: bytes of two codings are not combined by date")
    func codings() async throws {
        let dated: HeaderFields = [
            "Date": "Tue, 14 Nov 2023 22:13:20 GMT", "Last-Modified": "Mon, 13 Nov 2023 22:13:20 GMT",
            "Cache-Control": "max-age=60",
        ]
        let bench = CacheBench(
            .init { request in
                let isCoded = request.value(forHTTPHeaderField: "Accept-Encoding") == "gzip"
                let text = isCoded ? "GGGGGGGGGG" : "iiiiiiiiii"
                var fields = dated
                guard let range = request.value(forHTTPHeaderField: "Range") else {
                    return .respond(200, isCoded ? dated.merging(["Content-Encoding": "gzip"]) : dated, body: text)
                }
                if isCoded { fields["Content-Encoding"] = "gzip" }
                let (first, last) = range == "bytes=0-4" ? (0, 4) : (5, 9)
                fields["Content-Range"] = "bytes \(first)-\(last)/10"
                return .respond(206, fields, body: String(text.prefix(5)))
            }
        )
        try await bench.load(.get("http://origin.example/a", ["Range": "bytes=0-4", "Accept-Encoding": "gzip"]))
        try await bench.load(.get("http://origin.example/a", ["Range": "bytes=5-9"]))
        let whole = try await bench.load(.get())
        #expect(["iiiiiiiiii", "GGGGGGGGGG"].contains(whole.body), "\(whole.body)")
    }

    @Test(
        "RFC 9530 §2: digests in a 304 do not describe the stored bytes",
        arguments: ["Content-Digest", "Repr-Digest", "Content-MD5"]
    )
    func digests(_ name: String) async throws {
        let field = try #require(FieldName(name))
        let bench = Self.bench(
            mode: .private,
            [
                .respond(200, ["Cache-Control": "max-age=1", "ETag": "W/\"v\"", field: "stored"], body: "page"),
                .respond(304, ["Cache-Control": "max-age=60", "ETag": "W/\"v\"", field: "other"]),
            ]
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(2))
        for _ in 0..<2 {
            let response = try await bench.pipeline.send(.get())
            #expect(response.fields[field] == "stored")
            _ = try await response.body.collect()
        }
        #expect(bench.sends == 2)
    }

    // MARK: Credentials that nobody named

    @Test(
        "A field that a prepare step adds makes the response private to the caller",
        arguments: ["X-Api-Key", "X-Whatever"]
    )
    func preparedField(_ name: String) async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                .respond(
                    200,
                    ["Cache-Control": "max-age=60"],
                    body: request.value(forHTTPHeaderField: name) ?? "nobody"
                )
            }
        ) { configuration in
            configuration.prepare = [
                { request, context in
                    if context.options.tags.contains("alice") { request.setValue("alice", forHTTPHeaderField: name) }
                }
            ]
        }
        var options = CallOptions()
        options.tags = ["alice"]
        #expect(try await bench.load(.get(), options) == .network("alice"))
        #expect(try await bench.load() == .network("nobody"))
        #expect(try await bench.load() == .fresh("nobody"))
    }

    @Test("Userinfo from a prepare step makes the response private, whatever the transport does with it")
    func preparedUserinfo() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                .respond(200, ["Cache-Control": "max-age=60"], body: request.url?.user() ?? "nobody")
            }
        ) { configuration in
            configuration.prepare = [
                { request, context in
                    guard let user = context.options.tags.first else { return }
                    request.url = URL(string: "http://\(user):pw@origin.example/a")
                }
            ]
        }
        for user in ["alice", "bob"] {
            var options = CallOptions()
            options.tags = [user]
            #expect(try await bench.load(.get(), options) == .network(user))
        }
        #expect(try await bench.load() == .network("nobody"))
    }

    @Test(
        "A field that is known to hold no credential does not",
        arguments: ["User-Agent", "Traceparent", "X-Request-ID"]
    )
    func preparedHarmlessField(_ name: String) async throws {
        let bench = CacheBench(.init { _ in .respond(200, ["Cache-Control": "max-age=60"], body: "x") }) {
            configuration in
            configuration.prepare = [{ request, _ in request.setValue("1", forHTTPHeaderField: name) }]
        }
        try await bench.load()
        #expect(try await bench.load() == .fresh("x"))
    }

    @Test("A 304 to a prepare step's credential answers no waiting call")
    func sharedNotModified() async throws {
        let clock = ManualClock()
        let cache = HTTPCache(store: MemoryStore(capacity: 1 << 20))
        let origin = GatedOrigin { request, number in
            let user = request.value(forHTTPHeaderField: "Authorization") ?? "nobody"
            if number == 1 { return .answer(200, ["Cache-Control": "max-age=1", "ETag": "\"v\""], "page") }
            return user == "a" ? .answer(304, ["ETag": "\"v\"", "X-For": "a"], "") : .answer(200, [:], "for b")
        }
        func pipeline(_ user: String?) -> Pipeline {
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            configuration.attemptTimeout = nil
            if let user {
                configuration.prepare = [{ request, _ in request.setValue(user, forHTTPHeaderField: "Authorization") }]
            }
            return Pipeline(transport: origin, cache: cache, configuration: configuration)
        }
        origin.open()
        _ = try await pipeline(nil).send(.get()).body.collect()
        clock.advance(by: .seconds(2))
        let (a, b) = (pipeline("a"), pipeline("b"))
        let first = Task { try await a.send(.get()) }
        try await origin.asked.wait(for: 2)
        let second = Task { try await b.send(.get()).body.collect() }
        for _ in 0..<100 { await Task.yield() }
        origin.open(2)
        _ = try await first.value.body.collect()
        #expect(try await second.value == ByteChunk(copying: "for b".utf8))
    }

    @Test("A call with no-cache does not send the date of a guest's response as its condition")
    func borrowedValidator() async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                if request.value(forHTTPHeaderField: "If-Modified-Since") != nil { return .respond(304, [:]) }
                let fields: HeaderFields = [
                    "Cache-Control": "max-age=60", "Last-Modified": "Mon, 13 Nov 2023 22:13:20 GMT",
                ]
                return .respond(200, fields, body: request.value(forHTTPHeaderField: "Cookie") ?? "guest")
            }
        )
        try await bench.load()
        let answer = try await bench.load(
            .get("http://origin.example/a", ["Cookie": "sid=ALICE", "Cache-Control": "no-cache"])
        )
        #expect(answer == .network("sid=ALICE"))
    }

    @Test("RFC 9110 §13.1.2: a condition on an opted-in POST is evaluated by the origin")
    func postCondition() async throws {
        let bench = CacheBench(.init { _ in .respond(200, ["Cache-Control": "max-age=60"], body: "x") })
        var request = URLRequest.get("http://origin.example/q")
        request.httpMethod = "POST"
        request.httpBody = Data("q".utf8)
        var options = CallOptions()
        options.cachesContent = .raw
        try await bench.load(request, options)
        #expect(try await bench.load(request, options) == .fresh("x"))
        request.setValue("*", forHTTPHeaderField: "If-None-Match")
        #expect(try await bench.load(request, options) == .network("x"))
        #expect(bench.sent("If-None-Match") == [nil, "*"])
    }

    @Test(
        "RFC 9110 §8.8.2.2: a 304 by date to a prepare step's credential does not confirm a guest's response",
        arguments: [true, false]
    )
    func confirmedToAnother(hasStrongTag: Bool) async throws {
        var fields: HeaderFields = ["Cache-Control": "max-age=1", "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"]
        if hasStrongTag { fields[.eTag] = "\"1\"" }
        let stored = fields
        let transport = ScriptedTransport { request in
            let isConditional = ["If-None-Match", "If-Modified-Since"].contains {
                request.value(forHTTPHeaderField: $0) != nil
            }
            if isConditional { return .respond(304, stored) }
            return .respond(200, stored, body: request.value(forHTTPHeaderField: "X-Api-Key") ?? "guest")
        }
        let bench = CacheBench(transport)
        try await bench.load()
        bench.clock.advance(by: .seconds(5))
        var options = CallOptions()
        options.prepare = [{ request, _ in request.setValue("bob", forHTTPHeaderField: "X-Api-Key") }]
        #expect(try await bench.load(.get(), options).body == (hasStrongTag ? "guest" : "bob"))
        #expect(bench.sends == (hasStrongTag ? 2 : 3))
    }

    @Test(
        "RFC 9110 §8.8.1: a 304 to the URL that a prepare step made does not confirm what is stored for the call's own",
        arguments: [true, false]
    )
    func confirmedElsewhere(hasTag: Bool) async throws {
        var fields: HeaderFields = ["Cache-Control": "max-age=1", "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT"]
        if hasTag { fields[.eTag] = "\"1\"" }
        let stored = fields
        let bench = CacheBench(
            ScriptedTransport { request in
                let isConditional = ["If-None-Match", "If-Modified-Since"].contains {
                    request.value(forHTTPHeaderField: $0) != nil
                }
                if isConditional { return .respond(304, stored) }
                return .respond(200, stored, body: request.url?.query() ?? "guest")
            }
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(5))
        var options = CallOptions()
        options.prepare = [{ request, _ in request.url = URL(string: "http://origin.example/a?key=bob") }]
        #expect(try await bench.load(.get(), options).body == "key=bob")
        #expect(bench.sends == 2)
    }

    @Test("RFC 9110 §8.8.1: a 304 to a prepare step's own tag and URL does not confirm what is stored either")
    func confirmedByOwnTag() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "ETag": "\"1\""]
        let bench = CacheBench(
            ScriptedTransport { request in
                request.value(forHTTPHeaderField: "If-None-Match") == nil
                    ? .respond(200, fields, body: "guest") : .respond(304, fields)
            }
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(5))
        var options = CallOptions()
        options.prepare = [
            { request, _ in
                request.url = URL(string: "http://origin.example/a?key=bob")
                request.setValue("\"1\"", forHTTPHeaderField: "If-None-Match")
            }
        ]
        let answer = try await bench.load(.get(), options)
        #expect(answer.status == 304 && answer.body.isEmpty)
        // The stored response is as old as before.
        bench.clock.advance(by: .milliseconds(1))
        #expect(try await bench.load().body == "guest")
        #expect(bench.sends == 3)
    }
}
