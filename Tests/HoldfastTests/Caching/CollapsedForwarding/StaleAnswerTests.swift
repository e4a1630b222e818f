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

// lysine-dev/okhttp#1083, karpetrosyan/hishel#306, nodejs/undici#4471, Alamofire/Alamofire#1669,
// sourcelevel/faraday-http-cache#84: no stale-while-revalidate or stale-if-error, or half of it.
@Suite("Stale responses (RFC 5861, RFC 9111 §4.2.4)", .timeLimit(.minutes(20)))
struct StaleAnswerTests {
    static let whileRevalidating: HeaderFields = [
        "Cache-Control": "max-age=10, stale-while-revalidate=1000", "ETag": "\"a\"",
    ]

    /// A bench that has stored a response which is stale by now; `answer` gives the rest.
    static func bench(
        _ fields: HeaderFields,
        options: CacheOptions = CacheOptions(),
        retrierFactory: any RetrierFactory = NilRetrier.Factory(),
        urls: [String] = ["http://origin.example/a"],
        _ answer: @escaping @Sendable (Int) throws -> Response
    ) async throws -> FetchBench {
        let bench = FetchBench(
            GatedOrigin { request, number in
                number <= urls.count ? .answer(200, fields, "old") : try answer(number - urls.count)
            },
            retrierFactory: retrierFactory,
            options: options
        )
        for url in urls {
            bench.origin.open()
            _ = try await bench.load(.get(url))
        }
        bench.clock.advance(by: .seconds(20))
        return bench
    }

    @Test("A refresh started by a HEAD or a condition is not used for a call that needs the whole response")
    func refreshOfAnotherKind() async throws {
        let others: [URLRequest] = [
            .request("HEAD", "http://origin.example/a"), .get("http://origin.example/a", ["If-None-Match": "\"b\""]),
        ]
        for request in others {
            let bench = try await Self.bench(Self.whileRevalidating) { number in
                .answer(500, [:], number == 1 ? "" : "sorry")
            }
            #expect(try await bench.load(request).source == .stale)
            try await bench.origin.asked.wait(for: 2)
            var options = CallOptions()
            options.cache = .revalidate
            let call = bench.call(.get(), options)
            await until { bench.sends == 3 || bench.cache.fetches.readers > 0 }
            bench.origin.open(3)
            #expect(try await call.value.body == "sorry")
            #expect(bench.sends == 3)
            await bench.waitForQuiet()
        }
    }

    @Test(
        "nodejs/undici#4471, karpetrosyan/hishel#306: one background refresh, however many stale hits",
        arguments: [304, 200]
    )
    func oneRefresh(_ status: Int) async throws {
        let bench = try await Self.bench(Self.whileRevalidating) { _ in
            .answer(status, Self.whileRevalidating, status == 304 ? "" : "new")
        }
        for call in bench.calls(50) { #expect(try await call.value == .stale("old")) }
        try await bench.origin.asked.wait(for: 2)
        #expect(bench.sends == 2)
        bench.origin.open()
        await bench.waitForQuiet()
        #expect(try await bench.load() == .fresh(status == 304 ? "old" : "new"))
        #expect(bench.origin.sent("If-None-Match") == [nil, "\"a\""])
        let counted = bench.cache.statistics
        #expect(counted.revalidatingHits == 50)
        #expect(counted.backgroundRevalidations == 1 && counted.backgroundFailures == 0)
        // What nobody waited for was delivered to nobody: the first call's three bytes are all that crossed the network for one.
        #expect(counted.networkBytes == 3 && counted.revalidatedBytes == 0)
    }

    @Test("A failed refresh fails no call, and the next one waits 10 s", arguments: [500, 429, 0, -1])
    func failedRefresh(_ status: Int) async throws {
        let bench = try await Self.bench(Self.whileRevalidating) { number in
            if number > 1 { return .answer(304, Self.whileRevalidating) }
            if status == 0 { throw FetchDeadlineTests.dead }
            return status < 0 ? .answer(200, ["Cache-Control": "no-store"]) : .answer(status, [:], "no")
        }
        bench.origin.open(9)
        #expect(try await bench.load() == .stale("old"))
        await bench.waitForQuiet()
        bench.clock.advance(by: .milliseconds(9_999))
        #expect(try await bench.load() == .stale("old"))
        await bench.waitForQuiet()
        #expect(bench.sends == 2)
        bench.clock.advance(by: .milliseconds(1))
        #expect(try await bench.load() == .stale("old"))
        await bench.waitForQuiet()
        #expect(bench.sends == 3)
        #expect(try await bench.load() == .fresh("old"))
        #expect(bench.cache.statistics.backgroundFailures == 1)
    }

    @Test("No more refreshes run at once than allowed; beyond that stale responses are still served")
    func boundedRefreshes() async throws {
        var options = CacheOptions()
        options.maximumBackgroundRevalidations = 2
        let urls = (0..<5).map { "http://origin.example/\($0)" }
        let bench = try await Self.bench(Self.whileRevalidating, options: options, urls: urls) { _ in
            .answer(304, Self.whileRevalidating)
        }
        for url in urls { #expect(try await bench.load(.get(url)) == .stale("old")) }
        try await bench.origin.asked.wait(for: 7)
        #expect(bench.sends == 7)
        #expect(bench.cache.fetches.backgroundCount == 2)
        bench.origin.open(9)
        await bench.waitForQuiet()
        for url in urls { _ = try await bench.load(.get(url)) }
        await bench.waitForQuiet()
        #expect(bench.sends == 9 || bench.sends == 10)
    }

    @Test("A cancelled caller does not end the refresh; drain() waits for it, including its body")
    func drains() async throws {
        let source = GatedSource([ByteChunk(copying: "new".utf8)])
        let bench = try await Self.bench(Self.whileRevalidating) { _ in .stream(200, cacheable, source, nil) }
        let call = bench.call()
        #expect(try await call.value == .stale("old"))
        call.cancel()
        bench.origin.open()
        try await source.pulled.wait(for: 1)
        #expect(bench.cache.fetches.backgroundCount == 1)
        source.open(2)
        await bench.pipeline.drain()
        #expect(try await bench.load() == .fresh("new"))
    }

    @Test("must-revalidate overrides stale-while-revalidate and stale-if-error", arguments: [200, 503])
    func mustRevalidate(_ status: Int) async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=10, must-revalidate, stale-while-revalidate=1000, stale-if-error=1000"
        ]
        let bench = try await Self.bench(fields) { _ in .answer(status, fields, "new") }
        bench.origin.open()
        #expect(try await bench.load() == .network("new", status))
    }

    /// Where the leave to use something stale on an error comes from.
    enum Leave: CaseIterable, Sendable {
        case response, request, options, none
    }

    @Test(
        "RFC 5861 §4: a stale response replaces an origin error",
        arguments: [500, 502, 503, 504, 501, 404],
        Leave.allCases
    )
    func staleIfError(_ status: Int, _ leave: Leave) async throws {
        var options = CacheOptions()
        if leave == .options { options.staleIfError = .seconds(100) }
        let fields: HeaderFields = [
            "Cache-Control": leave == .response ? "max-age=10, stale-if-error=100" : "max-age=10"
        ]
        let bench = try await Self.bench(fields, options: options) { _ in .answer(status, [:], "no") }
        let request = URLRequest.get(
            "http://origin.example/a",
            leave == .request ? ["Cache-Control": "stale-if-error=100"] : [:]
        )
        let calls = bench.calls(3, request)
        await bench.waitForReaders(3)
        bench.origin.open()
        let isReplaced = leave != .none && ![501, 404].contains(status)
        for call in calls {
            bench.origin.open()
            let answer = try await call.value
            #expect(answer.status == (isReplaced ? 200 : status))
            #expect(answer.body == (isReplaced ? "old" : "no"))
        }
        if isReplaced { #expect(bench.cache.statistics.staleOnError == 3) }
    }

    @Test(
        "RFC 9111 §4.2.4: a stale response is served if the origin is unreachable, but not after a refused certificate",
        arguments: [
            (ServiceError.Code.connect, true), (.resolve, true), (.timeout, true), (.connectionLost, true),
            (.tls, true),
            (.offline, true), (.protocolError, true), (.other, true), (.certificate, false), (.badRequest, false),
            (.unsupported, false), (.bodyTooLarge, false),
        ]
    )
    func disconnected(_ code: ServiceError.Code, _ standsIn: Bool) async throws {
        let bench = try await Self.bench(["Cache-Control": "max-age=10"]) { _ in
            throw ServiceError(code, "scripted", progress: .notSent)
        }
        bench.origin.open()
        if standsIn {
            #expect(try await bench.load() == .stale("old"))
        } else {
            #expect(await FetchDeadlineTests.code(bench.call()) == code)
        }
    }

    @Test("RFC 9111 §5.2.2.4: a 304 for a stored error that says no-cache answers the first caller alone")
    func confirmedError() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60, no-cache", "ETag": "\"e\""]
        let bench = FetchBench(
            GatedOrigin { _, number in number == 1 ? .answer(500, fields, "no") : .answer(304, fields) }
        )
        bench.origin.open()
        _ = try await bench.load()
        let calls = bench.calls(3)
        await bench.waitForReaders(3)
        bench.origin.open(9)
        for call in calls { #expect(try await call.value == .init(status: 500, body: "no", source: .revalidated)) }
        #expect(bench.sends == 4)
    }

    @Test("staleWhenDisconnected zero: never")
    func neverWhenDisconnected() async throws {
        var options = CacheOptions()
        options.staleWhenDisconnected = .zero
        let bench = try await Self.bench(["Cache-Control": "max-age=10"], options: options) { _ in
            throw FetchDeadlineTests.dead
        }
        bench.origin.open()
        #expect(await FetchDeadlineTests.code(bench.call()) == .connectionLost)
    }

    @Test("RETRY §3.6: retries come first, then a stale response")
    func retriesFirst() async throws {
        let bench = try await Self.bench(
            ["Cache-Control": "max-age=10, stale-if-error=100"],
            retrierFactory: .exponentialBinary(maxBackoff: .seconds(4))
        ) { number in
            if number < 3 { throw FetchDeadlineTests.dead }
            return .answer(200, cacheable, "new")
        }
        bench.origin.open(9)
        let call = bench.call()
        for wait in 0..<2 {
            try await bench.clock.waitForSleeps(wait + 1)
            bench.clock.advance(by: .seconds(1 << wait))
        }
        #expect(try await call.value == .network("new").after(3))
    }

    @Test("What is purged while the exchange is under way does not stand in for its failure", arguments: [false, true])
    func purgedMeanwhile(softly: Bool) async throws {
        let bench = try await Self.bench(["Cache-Control": "max-age=10, stale-if-error=1000", "ETag": "\"a\""]) { _ in
            .answer(503, [:], "no")
        }
        let call = bench.call()
        try await bench.origin.asked.wait(for: 2)
        if softly { _ = try await bench.cache.markStale(.all) } else { _ = try await bench.cache.remove(.all) }
        bench.origin.open()
        #expect(try await call.value.status == 503)
    }

    @Test("RFC 9111 §4.4: what a POST to an equivalent query has invalidated meanwhile does not stand in for a failure")
    func invalidatedUnderAnotherQuery() async throws {
        let held = CountWatch()
        let fields: HeaderFields = [
            "Cache-Control": "max-age=10, stale-if-error=1000", "ETag": "\"a\"", "No-Vary-Search": "params=(\"s\")",
        ]
        let bench = FetchBench(
            GatedOrigin { request, number in
                if request.httpMethod == "POST" { return .answer(204, [:], "") }
                if number == 1 { return .answer(200, fields, "old") }
                try await held.wait(for: 1)
                return .answer(503, [:], "no")
            },
            retrierFactory: NilRetrier.Factory(),
            options: CacheOptions()
        )
        bench.origin.open(3)
        _ = try await bench.load(.get("http://origin.example/?q=a&s=9"))
        bench.clock.advance(by: .seconds(20))
        let call = bench.call(.get("http://origin.example/?q=a&s=1"))
        try await bench.origin.asked.wait(for: 2)
        _ = try await bench.load(.request("POST", "http://origin.example/?q=a&s=9"))
        held.increment()
        #expect(try await call.value.status == 503)
    }
}
