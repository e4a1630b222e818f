// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Asked for in lysine-dev/okhttp#1083 and Alamofire/Alamofire#1669: show what is stored at once, then what is new.
@Suite("Stale, then fresh", .timeLimit(.minutes(20)))
struct StaleThenFreshTests {
    static let tagged: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\""]

    /// A bench with a response stored some seconds ago, and what the origin says from then on.
    static func bench(
        fields: HeaderFields = tagged,
        age: Int = 100,
        store: any CacheStore = MemoryStore(capacity: 1 << 20),
        _ later: ScriptedTransport.Step...
    ) async throws -> CacheBench {
        let bench = CacheBench([.respond(200, fields, body: "old")] + later, store: store)
        try await bench.load()
        bench.clock.advance(by: .seconds(age))
        return bench
    }

    static func answers(
        _ bench: CacheBench,
        _ request: URLRequest = .get(),
        _ options: CallOptions = CallOptions()
    ) async throws -> [CacheBench.Answer] {
        var answers: [CacheBench.Answer] = []
        for try await response in bench.pipeline.staleThenFresh(for: request, options: options) {
            let body = String(decoding: try await response.body.collect(), as: UTF8.self)
            answers.append(.init(status: response.status.rawValue, body: body, source: response.source))
        }
        return answers
    }

    static let stale = CacheBench.Answer(status: 200, body: "old", source: .stale)

    @Test("okhttp#1083, Alamofire#1669: the stale response first, then the origin's", arguments: EachStore.allCases)
    func both(kind: EachStore) async throws {
        try await kind.with { store in
            let bench = try await Self.bench(store: store, .respond(200, Self.tagged, body: "new"))
            #expect(try await Self.answers(bench) == [Self.stale, .network("new")])
            #expect(try await bench.load() == .fresh("new"))
            #expect(bench.sent("If-None-Match") == [nil, "\"v\""])
        }
    }

    @Test("okhttp#1083: a fresh response is the only one, and nothing is sent")
    func fresh() async throws {
        let bench = try await Self.bench(age: 10)
        #expect(try await Self.answers(bench) == [.fresh("old")])
        #expect(bench.sends == 1)
    }

    @Test("Alamofire#1669: if nothing is stored, there is one response")
    func nothingStored() async throws {
        let bench = CacheBench([.respond(200, Self.tagged, body: "new")])
        #expect(try await Self.answers(bench) == [.network("new")])
        #expect(try await bench.load() == .fresh("new"))
    }

    @Test("A 304 confirms the first response: there is no second, and the entry is fresh again")
    func notModified() async throws {
        let bench = try await Self.bench(.respond(304))
        #expect(try await Self.answers(bench) == [Self.stale])
        #expect(bench.sends == 2)
        #expect(try await bench.load() == .fresh("old"))
    }

    @Test("A 304 that selects another variant gives a second response (RFC 9111 §4.3.4)")
    func otherVariant() async throws {
        let transport = ScriptedTransport { request in
            let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
            if request.value(forHTTPHeaderField: "If-None-Match") != nil {
                return .respond(304, ["ETag": "\"en\"", "Vary": "Accept-Language"])
            }
            var fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"\(language)\""]
            // The second one, which does not vary, answers both requests.
            if language == "en" { fields["Vary"] = "Accept-Language" }
            return .respond(200, fields, body: language)
        }
        let bench = CacheBench(transport)
        for language in ["en", "de"] {
            try await bench.load(.get("http://origin.example/a", ["Accept-Language": language]))
        }
        bench.clock.advance(by: .seconds(60))
        let answers = try await Self.answers(bench, .get("http://origin.example/a", ["Accept-Language": "en"]))
        #expect(answers.map(\.body) == ["de", "en"])
        #expect(answers.map(\.source) == [.stale, .revalidated])
    }

    @Test(
        "If stale use is forbidden, there is only the origin's response (RFC 9111 §4.2.4)",
        arguments: [
            ("max-age=60, must-revalidate", ""), ("max-age=60, no-cache", ""), ("max-age=60", "no-cache"),
            ("max-age=60", "max-age=0"), ("max-age=60", "min-fresh=5"), ("max-age=60", "no-store"),
        ]
    )
    func forbidden(response: String, request: String) async throws {
        let fields: HeaderFields = ["Cache-Control": response, "ETag": "\"v\""]
        let bench = try await Self.bench(fields: fields, .respond(200, fields, body: "new"))
        let asking = URLRequest.get("http://origin.example/a", request.isEmpty ? [:] : ["Cache-Control": request])
        #expect(try await Self.answers(bench, asking) == [.network("new")])
    }

    @Test("A soft purge forbids it too")
    func softPurged() async throws {
        let bench = try await Self.bench(age: 10, .respond(200, Self.tagged, body: "new"))
        try await bench.cache.markStale(.all)
        #expect(try await Self.answers(bench) == [.network("new")])
    }

    @Test(
        "The call's directive applies",
        arguments: [
            (CacheDirective.reload, [CacheBench.Answer.network("new")]), (.revalidate, [.network("new")]),
            (.noStore, [.network("new")]), (.maxStale(.seconds(39)), [.network("new")]),
            (.maxStale(.seconds(40)), [stale, .network("new")]),
            (.onlyIfCached, [.init(status: 504, body: "", source: .synthesized)]),
            (CacheDirective(ignoresAge: true), [stale]),
        ]
    )
    func directives(directive: CacheDirective, expected: [CacheBench.Answer]) async throws {
        let bench = try await Self.bench(.respond(200, Self.tagged, body: "new"))
        var options = CallOptions()
        options.cache = directive
        #expect(try await Self.answers(bench, .get(), options) == expected)
    }

    @Test(
        "The request's cachePolicy applies",
        arguments: [
            (URLRequest.CachePolicy.useProtocolCachePolicy, [stale, CacheBench.Answer.network("new")]),
            (.reloadIgnoringLocalCacheData, [.network("new")]), (.reloadRevalidatingCacheData, [.network("new")]),
            (.returnCacheDataElseLoad, [stale]), (.returnCacheDataDontLoad, [stale]),
        ]
    )
    func policies(policy: URLRequest.CachePolicy, expected: [CacheBench.Answer]) async throws {
        let bench = try await Self.bench(.respond(200, Self.tagged, body: "new"))
        var request = URLRequest.get()
        request.cachePolicy = policy
        #expect(try await Self.answers(bench, request) == expected)
    }

    @Test("An origin error comes after the stale response: a status as a response, a failure as an error")
    func failures() async throws {
        let fields = Self.tagged.merging(["Cache-Control": "max-age=60, stale-if-error=600, stale-while-revalidate=600"]
        )
        let down = try await Self.bench(fields: fields, .respond(503, body: "down"))
        #expect(try await Self.answers(down) == [Self.stale, .network("down", 503)])
        let dead = try await Self.bench(fields: fields, .fail(progress: .notSent))
        var answers: [ResponseSource] = []
        await #expect(throws: ServiceError.self) {
            for try await response in dead.pipeline.staleThenFresh(for: .get()) { answers.append(response.source) }
        }
        #expect(answers == [.stale])
    }

    @Test("The stale response does not wait for the origin; leaving the sequence ends the exchange")
    func leaving() async throws {
        let bench = try await Self.bench(.silence)
        for try await response in bench.pipeline.staleThenFresh(for: .get()) {
            #expect(response.source == .stale)
            try await bench.transport.waitForSends(2)
            break
        }
        await bench.pipeline.drain()
        #expect(bench.cache.statistics.staleOnError == 0)
    }

    @Test("Cancelling the task that iterates throws CancellationError, and ends the exchange")
    func cancelling() async throws {
        let bench = try await Self.bench(.silence)
        let pipeline = bench.pipeline
        let task = Task {
            var count = 0
            do {
                for try await _ in pipeline.staleThenFresh(for: .get()) { count += 1 }
                return "ended"
            } catch {
                return "\(count) \(error is CancellationError)"
            }
        }
        try await bench.transport.waitForSends(2)
        task.cancel()
        #expect(await ["0 true", "1 true"].contains(task.value))
        await pipeline.drain()
    }

    @Test("A stored response that the caller's acceptance refuses is skipped: there is only the origin's response")
    func acceptance() async throws {
        let bench = try await Self.bench(.respond(200, Self.tagged, body: "new"))
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            if response.source == .stale || response.source == .synthesized {
                throw ServiceError(.other, "refused")
            }
        }
        #expect(try await Self.answers(bench, .get(), options) == [.network("new")])
    }

    @Test("A request that is neither GET nor HEAD is sent once")
    func otherMethods() async throws {
        let bench = CacheBench([.respond(201, body: "made")])
        #expect(try await Self.answers(bench, .request("POST", "http://origin.example/a")) == [.network("made", 201)])
        #expect(bench.sends == 1)
    }
}
