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

@Suite("Cache statistics", .timeLimit(.minutes(20)))
struct CacheStatisticsTests {
    @Test("Each request is exactly one of hit, revalidation, miss and bypass")
    func kinds() async throws {
        let transport = ScriptedTransport { request in
            if request.value(forHTTPHeaderField: "If-None-Match") != nil { return .respond(304) }
            switch request.url?.path {
            case "/fresh": return .respond(200, ["Cache-Control": "max-age=60"], body: "12345")
            case "/tag": return .respond(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], body: "123")
            default: return .respond(200, ["Cache-Control": "no-store"], body: "1234567")
            }
        }
        let bench = CacheBench(transport)
        for path in ["fresh", "fresh", "fresh", "tag", "tag", "none", "none"] {
            try await bench.load(.get("http://h.example/\(path)"))
        }
        try await bench.load(.request("POST", "http://h.example/none"))
        let counted = bench.cache.statistics
        #expect(counted.requests == 8)
        #expect(counted.hits == 2)
        #expect(counted.revalidated == 1)
        #expect(counted.misses == 4)
        #expect(counted.bypasses == 1)
        #expect(counted.stored == 2)
        #expect(counted.hitBytes == 10)
        #expect(counted.revalidatedBytes == 3)
        #expect(counted.networkBytes == 5 + 3 + 14)
        #expect(counted.bytesFromStore == 13)
        #expect(counted.hitRatio == 2.0 / 7.0)
        #expect(counted.byteHitRatio == 10.0 / 35.0)
    }

    @Test("A failure that a stale response replaces is delivered to nobody", arguments: [true, false])
    func replacedByStale(_ streams: Bool) async throws {
        let stored: ScriptedTransport.Step = .respond(
            200,
            ["Cache-Control": "max-age=1, stale-if-error=1000"],
            body: "0123456789"
        )
        let failure: ScriptedTransport.Step =
            streams ? .stream(503, chunks: ["unavailable"], length: 11) : .respond(503, body: "unavailable")
        let bench = CacheBench(ScriptedTransport([stored, failure], repeatsLastStep: true))
        try await bench.load()
        bench.clock.advance(by: .seconds(5))
        for _ in 0..<9 { #expect(try await bench.load().source == .stale) }
        #expect(bench.cache.statistics.networkBytes == 10)
        #expect(bench.cache.statistics.staleOnErrorBytes == 90)
    }

    @Test("A body in memory whose response is refused is delivered neither to the first call nor to one that joined")
    func refused() async throws {
        let bench = FetchBench(
            GatedOrigin { _, number in number == 1 ? .answer(500, [:], "12345") : .answer(200, [:], "123") }
        )
        var options = CallOptions()
        options.acceptance = .successful
        let calls = bench.calls(2, .get(), options)
        await bench.waitForReaders(2)
        bench.origin.open(2)
        for call in calls { await #expect(throws: ServiceError.self) { try await call.value } }
        #expect(bench.sends == 1)
        #expect(bench.cache.statistics.collapsed == 1)
        #expect(bench.cache.statistics.networkBytes == 0 && bench.cache.statistics.collapsedBytes == 0)
        #expect(try await bench.load(.get(), options) == .network("123"))
        #expect(bench.cache.statistics.networkBytes == 3)
    }

    @Test("The rest of a body that the caller has left is stored, but delivered to nobody")
    func left() async throws {
        let source = GatedSource(["one", "two", "six"].map { ByteChunk(copying: $0.utf8) })
        let bench = FetchBench(GatedOrigin { _, _ in .stream(200, cacheable, source, 9) })
        source.open(4)
        bench.origin.open()
        let response = try await bench.pipeline.send(.get())
        var chunks = response.body.makeAsyncIterator()
        #expect(try await chunks.next() == ByteChunk(copying: "one".utf8))
        response.body.discard()
        await bench.waitForQuiet()
        #expect(try await bench.load() == .fresh("onetwosix"))
        #expect(bench.cache.statistics.networkBytes == 3)
        #expect(bench.cache.statistics.hitBytes == 9)
    }

    @Test("An exchange that is cancelled below the cache while its caller is still there is a miss")
    func cancelledBelow() async throws {
        let bench = CacheBench([.fail(URLError(.cancelled))])
        await #expect(throws: CancellationError.self) { try await bench.load() }
        #expect(bench.cache.statistics.requests == 1)
        #expect(bench.cache.statistics.misses == 1)
    }

    @Test("A retry is not a second request, and a validation without a response is a miss")
    func retriesAndFailures() async throws {
        let bench = CacheBench(
            ScriptedTransport([
                .respond(503), .respond(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], body: "x"),
                .fail(.badRequest, progress: .notSent),
            ]),
            retrierFactory: AnyRetrierFactory { _ in OnceRetrier() }
        )
        try await bench.load()
        #expect(bench.cache.statistics.requests == 1)
        #expect(bench.cache.statistics.misses == 1)
        _ = try? await bench.load()
        #expect(bench.cache.statistics.requests == 2)
        #expect(bench.cache.statistics.misses == 2)
    }

    @Test("A cancelled validation is a miss")
    func cancelledValidation() async throws {
        let bench = CacheBench([.respond(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], body: "x"), .silence])
        try await bench.load()
        let call = Task { try await bench.load() }
        try await bench.transport.waitForSends(2)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(bench.cache.statistics.misses == 2)
    }

    @Test("Without requests both ratios are 0")
    func empty() {
        #expect(CacheStatistics().hitRatio == 0)
        #expect(CacheStatistics().byteHitRatio == 0)
    }
}

private struct OnceRetrier: Retrier {
    func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
        attempt.response == nil ? .stop(.notRetryable) : .retryNow
    }
}
