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

@Suite("Prefetching", .timeLimit(.minutes(20)))
struct PrefetchTests {
    static func request(_ name: String) -> URLRequest { .get("http://origin.example/\(name)") }

    static func words(_ report: PrefetchReport) -> [String] {
        report.items.map { item in
            switch item.outcome {
            case .stored: "stored"
            case .alreadyStored: "already"
            case .notStored(let reason): reason.code
            case .failed(let error): error is CancellationError ? "cancelled" : "failed"
            }
        }
    }

    @Test("Each request gets its own result, in order, and bodies go to the store", arguments: EachStore.allCases)
    func outcomes(kind: EachStore) async throws {
        let transport = ScriptedTransport { request in
            let fresh: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\""]
            if request.value(forHTTPHeaderField: "If-None-Match") != nil { return .respond(304) }
            return switch request.url?.path {
            case "/refused": .respond(200, ["Cache-Control": "no-store"], body: "x")
            case "/error": .respond(500)
            case "/short": .stream(200, fresh, chunks: ["a"], length: 9)
            case "/broken": .stream(200, fresh, chunks: ["a"], failure: URLError(.networkConnectionLost))
            case "/dead": .fail(progress: .notSent)
            default: .stream(200, fresh, chunks: ["a", "b"])
            }
        }
        try await kind.with { store in
            let bench = CacheBench(transport, store: store)
            try await bench.load(Self.request("old"))
            bench.clock.advance(by: .seconds(60))
            try await bench.load(Self.request("known"))
            let sends = bench.sends
            let names = ["a", "known", "old", "refused", "error", "short", "broken", "dead", "b"]
            var requests = names.map { Self.request($0) }
            requests.append(.request("POST", "http://origin.example/post"))
            let report = await bench.pipeline.prefetch(requests)
            #expect(
                Self.words(report) == [
                    "stored", "already", "stored", CacheReason.responseNoStore.code,
                    CacheReason.noFreshness.code, CacheReason.incomplete.code, "failed", "failed", "stored",
                    CacheReason.method.code,
                ]
            )
            #expect(report.items.map(\.request.url) == requests.map(\.url))
            #expect(report.storedCount == 3)
            #expect(report.availableCount == 4)
            #expect(report.failedRequests.map { $0.url?.path } == ["/error", "/broken", "/dead"])
            #expect(bench.sends == sends + 8)
            for name in ["a", "b", "known", "old"] { #expect(try await bench.load(Self.request(name)) == .fresh("ab")) }
        }
    }

    @Test("A method that is not a token is not known to be safe, so nothing is sent (RFC 9110 §9.1)")
    func invalidMethod() async {
        let bench = CacheBench(ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "x")]))
        let report = await bench.pipeline.prefetch([.request("GET x", "http://origin.example/a")])
        #expect(Self.words(report) == [CacheReason.method.code])
        #expect(bench.sends == 0)
    }

    @Test("No more requests are in progress at once than allowed", arguments: [(1, 1), (3, 3), (0, 1), (99, 8)])
    func concurrency(asked: Int, expected: Int) async throws {
        let running = Mutex((now: 0, most: 0))
        let arrived = CountWatch()
        let gate = CountWatch()
        let transport = ScriptedTransport { _ in
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            arrived.increment()
            try await gate.wait(for: 1)
            running.withLock { $0.now -= 1 }
            return .respond(200, ["Cache-Control": "max-age=60"], body: "x")
        }
        let bench = CacheBench(transport)
        let requests = (0..<8).map { Self.request("\($0)") }
        let pipeline = bench.pipeline
        let prefetch = Task { await pipeline.prefetch(requests, concurrency: asked) }
        try await arrived.wait(for: expected)
        gate.increment()
        #expect(await prefetch.value.storedCount == 8)
        #expect(running.withLock { $0.most } == expected)
    }

    @Test("Cancellation is prompt: running requests are cancelled, waiting ones are not sent")
    func cancellation() async throws {
        let bench = CacheBench(ScriptedTransport([.silence], repeatsLastStep: true))
        let pipeline = bench.pipeline
        let prefetch = Task { await pipeline.prefetch((0..<9).map { Self.request("\($0)") }, concurrency: 2) }
        try await bench.transport.waitForSends(2)
        prefetch.cancel()
        #expect(await Self.words(prefetch.value) == [String](repeating: "cancelled", count: 9))
        #expect(bench.sends == 2)
    }

    @Test("The options' tags and principal apply to each; equal requests are sent once")
    func options() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "x")
        let bench = CacheBench(ScriptedTransport([step], repeatsLastStep: true))
        var options = CallOptions()
        options.tags = ["offline"]
        options.principal = "ann"
        let report = await bench.pipeline.prefetch([Self.request("a"), Self.request("a")], options: options)
        #expect(report.availableCount == 2)
        #expect(bench.sends == 1)
        #expect(try await bench.cache.pin(.tag("offline")) == PinReport(pinned: 1))
        #expect(try await bench.load(Self.request("a")) == .network("x"))
    }

    @Test(
        "A store that fails while the body is written does not count as success",
        arguments: [FaultyStore.Fault.append, .commit]
    )
    func storeFails(fault: FaultyStore.Fault) async throws {
        let store = FaultyStore()
        let step = ScriptedTransport.Step.stream(200, ["Cache-Control": "max-age=60"], chunks: ["a", "b"])
        let bench = CacheBench(ScriptedTransport([step]), store: store)
        store.fault.withLock { $0 = fault }
        let report = await bench.pipeline.prefetch([Self.request("a")])
        #expect(Self.words(report) == [CacheReason.storeFailure.code])
    }

    @Test("Without a cache there is nothing to fill")
    func noCache() async throws {
        let pipeline = Pipeline(transport: ScriptedTransport([.respond(200, body: "x")]))
        #expect(Self.words(await pipeline.prefetch([Self.request("a")])) == [CacheReason.noCache.code])
        #expect(await pipeline.prefetch([]).items.isEmpty)
    }
}
