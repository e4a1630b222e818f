// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastSimulation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Measuring: recording a cache's traffic", .timeLimit(.minutes(20)))
struct RecordedTrafficTests {
    private static let origin = ScriptedTransport { request in
        let path = request.url?.path ?? ""
        switch path {
        case "/tag":
            if request.value(forHTTPHeaderField: "If-None-Match") == "\"v\"" { return .respond(304) }
            return .respond(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], body: "123")
        case "/new":
            let number = Int(request.value(forHTTPHeaderField: "If-None-Match")?.dropFirst().dropLast() ?? "") ?? 0
            return .respond(200, ["Cache-Control": "no-cache", "ETag": "\"\(number + 1)\""], body: "12345")
        case "/never": return .respond(200, ["Cache-Control": "no-store"], body: "1")
        case "/language":
            let language = request.value(forHTTPHeaderField: "Accept-Language") ?? ""
            return .respond(200, ["Cache-Control": "max-age=60", "Vary": "Accept-Language"], body: language)
        default: return .respond(200, ["Cache-Control": "max-age=60"], body: "1234567890")
        }
    }

    private static func bench(
        _ store: any CacheStore = MemoryStore(capacity: 1 << 20)
    ) -> (CacheBench, HitRateRecorder) {
        let bench = CacheBench(origin, store: store)
        let recorder = HitRateRecorder()
        bench.cache.record(with: recorder)
        return (bench, recorder)
    }

    private static func numbers(_ recorder: HitRateRecorder) -> [UInt32] { recorder.trace.requests.map(\.key) }

    @Test(
        "A miss and the hits on what it stored have one key and one size; other URLs have others",
        arguments: EachStore.allCases
    )
    func hits(kind: EachStore) async throws {
        try await kind.with { store in
            let (bench, recorder) = Self.bench(store)
            for path in ["a", "a", "b", "a"] { try await bench.load(.get("http://h.example/\(path)")) }
            #expect(Self.numbers(recorder) == [0, 0, 1, 0])
            let sizes = recorder.trace.requests.map(\.size)
            #expect(Set(sizes).count == 1)
            #expect(sizes[0] > 704 && sizes[0] < 2_000)
        }
    }

    @Test("The size is what the memory store counts, except for its own tables")
    func size() async throws {
        let (bench, recorder) = Self.bench()
        try await bench.load(.get("http://h.example/a"))
        #expect(abs(recorder.trace.totalBytes - bench.cache.store.statistics.bytesUsed) <= 704)
    }

    @Test("What a 304 confirms has the same key, and what replaces it has another")
    func validation() async throws {
        let (bench, recorder) = Self.bench()
        for _ in 0..<3 { try await bench.load(.get("http://h.example/tag")) }
        #expect(bench.cache.statistics.revalidated == 2)
        #expect(Self.numbers(recorder) == [0, 0, 0])
        for _ in 0..<3 { try await bench.load(.get("http://h.example/new")) }
        #expect(Self.numbers(recorder) == [0, 0, 0, 1, 2, 3])
    }

    @Test("Without a validator, a stale response that is fetched again has another key: no cache of any size had it")
    func expiry() async throws {
        let (bench, recorder) = Self.bench()
        for _ in 0..<3 {
            for _ in 0..<2 { try await bench.load(.get("http://h.example/a")) }
            bench.clock.advance(by: .seconds(61))
        }
        #expect(Self.numbers(recorder) == [0, 0, 1, 1, 2, 2])
    }

    @Test("An evicted response fetched again while still fresh has the same key: a larger cache had it")
    func evicted() async throws {
        let (bench, recorder) = Self.bench()
        try await bench.load(.get("http://h.example/tag"))
        try await bench.load(.get("http://h.example/a"))
        try await bench.cache.remove(.all)
        try await bench.load(.get("http://h.example/tag"))
        try await bench.load(.get("http://h.example/a"))
        #expect(bench.cache.statistics.misses == 4)
        #expect(Self.numbers(recorder) == [0, 1, 0, 1])
    }

    @Test("Variants have their own keys")
    func variants() async throws {
        let (bench, recorder) = Self.bench()
        for language in ["de", "en", "de"] {
            try await bench.load(.get("http://h.example/language", ["Accept-Language": language]))
        }
        #expect(Self.numbers(recorder) == [0, 1, 0])
    }

    @Test("Bypasses and responses that may never be stored are left out")
    func leftOut() async throws {
        let (bench, recorder) = Self.bench()
        try await bench.load(.get("http://h.example/never"))
        try await bench.load(.request("POST", "http://h.example/a"))
        try await bench.load(.get("http://h.example/a", ["Cache-Control": "no-store"]))
        #expect(recorder.count == 0)
        #expect(recorder.requestsSeen == 0)
    }

    @Test("A response that the store had no room for counts: a larger cache would have it")
    func tooLarge() async throws {
        let (bench, recorder) = Self.bench(MemoryStore(capacity: 64))
        for _ in 0..<2 { try await bench.load(.get("http://h.example/a")) }
        #expect(bench.cache.statistics.misses == 2)
        #expect(Self.numbers(recorder) == [0, 0])
        #expect(recorder.estimate(capacities: [1 << 20], policies: [.lru])[0].objectHitRatio == 0.5)
    }

    @Test("A body of unknown length counts as the bytes that were read")
    func streamed() async throws {
        let bench = CacheBench(
            ScriptedTransport { _ in
                .stream(200, ["Cache-Control": "max-age=60"], chunks: ["1234", "567"])
            }
        )
        let recorder = HitRateRecorder()
        bench.cache.record(with: recorder)
        for _ in 0..<2 { try await bench.load() }
        let sizes = recorder.trace.requests.map(\.size)
        #expect(bench.cache.statistics.hits == 1)
        #expect(sizes.count == 2)
        #expect(sizes.first == sizes.last)
    }

    @Test("Recording ends when told to, and can continue in another recorder")
    func changes() async throws {
        let (bench, first) = Self.bench()
        try await bench.load()
        bench.cache.record(with: nil)
        try await bench.load()
        let second = HitRateRecorder()
        bench.cache.record(with: second)
        try await bench.load()
        #expect((first.count, second.count) == (1, 1))
    }

    @Test("From traffic to the estimate: a cache that holds everything has exactly this cache's hits")
    func endToEnd() async throws {
        let (bench, recorder) = Self.bench()
        var random = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            let number = Int(1 / Double.random(in: 0.01..<1, using: &random))
            try await bench.load(.get("http://h.example/item/\(number)"))
        }
        let counted = bench.cache.statistics
        let estimates = recorder.estimate(capacities: [1 << 20, 2_000], policies: [.lru])
        #expect(estimates[0].replayed.hits == counted.hits)
        #expect(estimates[0].objectHitRatio == counted.hitRatio)
        #expect(estimates[1].objectHitRatio < counted.hitRatio)
    }
}
