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

@Suite("Fresh hits: what is around the cache", .timeLimit(.minutes(20)))
struct FreshHitChainTests {
    @Test("Options that affect the cache send a call along the full path", arguments: ComparedChain.allCases)
    func concerningOptions(_ chain: ComparedChain) async throws {
        let twins = ComparedTwins(chain) { _, _ in ["Cache-Control": "max-age=60", "ETag": "\"v\""] }
        await twins.warm()
        func ask(_ change: (inout CallOptions) -> Void) async -> ComparedAnswer {
            var options = CallOptions()
            change(&options)
            return await twins.ask(.get("http://origin.example/a", ["X-Key": "k"]), options)
        }
        #expect(await !ask { $0.cache = .revalidate }.isByFacts)
        #expect(await !ask { $0.cache = .noStore }.isByFacts)
        #expect(await !ask { $0.cache = .maxStale(.seconds(1)) }.isByFacts)
        #expect(await !ask { $0.cache.minFresh = .seconds(61) }.isByFacts)
        #expect(await !ask { $0.principal = "alice" }.isByFacts)
        #expect(await !ask { $0.credentialFields = ["X-Key"] }.isByFacts)
        #expect(await !ask { $0.cachesContent = .raw }.isByFacts)
        let exact = try ExactRequestHead(method: .get, origin: "http://origin.example", requestTarget: "/b")
        // It is another request's.
        #expect(await ask { $0.exactHead = exact }.isByFacts)
        twins.expectSameCounts()
    }

    @Test("Other options have no effect", arguments: ComparedChain.allCases)
    func otherOptions(_ chain: ComparedChain) async {
        let twins = ComparedTwins(chain)
        await twins.warm()
        var options = CallOptions()
        options.operationName = "getA"
        options.tags = ["t"]
        options.timeout = .seconds(9)
        options.retryRules = RetryRules.never
        options.prepare = [{ request, _ in request.setValue("1", forHTTPHeaderField: "X-Prepared") }]
        #expect(await twins.ask(.get(), options).isByFacts)
        var bare = CallOptions()
        bare.usesAuthorization = false
        #expect(await twins.ask(.get(), bare).isByFacts)
        twins.expectSameCounts()
    }

    @Test(
        "A ready answer that the caller refuses is removed, and the call is sent past the store",
        arguments: ComparedChain.allCases
    )
    func refused(_ chain: ComparedChain) async {
        let twins = ComparedTwins(chain)
        await twins.warm()
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            if try await response.body.collect() == ByteChunk(copying: "1".utf8) { throw Refused(reason: "old") }
            response.body = ResponseBody(ByteChunk(copying: "accepted".utf8))
        }
        let seen = await twins.ask(.get(), options)
        #expect(seen.text == "accepted")
        #expect(seen.sends == 2)
        // Neither cache has anything of what was refused.
        let next = await twins.ask()
        #expect(next.text == "2")
        #expect(next.sends == 2)
        twins.expectSameCounts()
    }

    @Test("One that the caller accepts stays", arguments: ComparedChain.allCases)
    func accepted(_ chain: ComparedChain) async {
        let twins = ComparedTwins(chain)
        await twins.warm()
        var options = CallOptions()
        options.acceptance = .successful
        for _ in 0..<3 { #expect(await twins.ask(.get(), options).isByFacts) }
        twins.expectSameCounts()
    }

    @Test("If nothing may be sent, a refused answer ends the call")
    func refusedOffline() async {
        let twins = ComparedTwins()
        await twins.warm()
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw Refused() }
        #expect(await twins.ask(.get(), options).error == "Refused")
        #expect(twins.short.cache.store.statistics.entryCount == 0)
    }

    @Test("Observers get the same events as for any other hit")
    func observed() async {
        let twins = ComparedTwins(.observed)
        await twins.warm()
        let names = twins.short.events.names.suffix(3)
        #expect(names == [.callStarted, .cacheDecided, .callEnded])
        #expect(twins.short.events.events(.cacheDecided).last?.detail == "hit: fresh (RFC 9111 §4.2)")
        twins.expectSameCounts()
    }

    @Test("An outer cache stores the ready answer of an inner one", arguments: [ComparedChain.nested, .stacked])
    func outerCache(_ chain: ComparedChain) async throws {
        let twins = ComparedTwins(chain) { _, _ in ["Cache-Control": "max-age=60", "Retry-After": "30"] }
        for round in 0..<4 {
            try await twins.change { _ = try await $0.outer?.remove(.all, now: $0.clock.timestamp) }
            let seen = await twins.ask(note: "round \(round)")
            #expect(seen.text == "1")
            twins.advance(.seconds(1))
            #expect(await twins.ask(note: "round \(round)").fields["Age"] == "\(round + 1)")
        }
        #expect(twins.short.transport.sent.count == 1)
        let stored = twins.short.outer?.store.statistics.entryCount
        #expect(stored == twins.long.outer?.store.statistics.entryCount)
        #expect(chain == .stacked || stored == 1)
        twins.expectSameCounts()
    }

    @Test("A retrier is not asked about an error that is stored and fresh")
    func storedError() async throws {
        let transport = ScriptedTransport([.respond(503, ["Cache-Control": "max-age=60"], body: "busy")])
        let factory = AnyRetrierFactory { _ in
            Issue.record("a retrier was made for what the store answered")
            return NilRetrier()
        }
        let first = Pipeline(transport: transport, cache: .inMemory())
        _ = try await first.data(for: .get())
        let pipeline = Pipeline(transport: transport, cache: first.cache, retrierFactory: factory)
        for _ in 0..<8 { #expect(try await pipeline.send(.get()).status == .serviceUnavailable) }
    }

    @Test("A cancelled caller gets a stored response, ready or not")
    func cancelled() async throws {
        for answersFreshHits in [true, false] {
            let cache = HTTPCache(
                store: MemoryStore(capacity: 1 << 20),
                options: CacheOptions(),
                answersFreshHits: answersFreshHits
            )
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "x")])
            let pipeline = Pipeline(transport: transport, cache: cache)
            for _ in 0..<8 { _ = try await pipeline.data(for: .get()) }
            let call = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await pipeline.send(.get()).status
            }
            #expect(try await call.value == .ok)
        }
    }
}
