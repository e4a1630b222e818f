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
