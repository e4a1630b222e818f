// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast
@testable import HoldfastStorage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Fresh hits: what happens to their entry", .timeLimit(.minutes(20)))
struct FreshHitStoreTests {
    /// The stores that give bodies without suspending.
    enum Store: String, CaseIterable, Sendable {
        case memory, tiered

        func twins(
            _ options: CacheOptions = CacheOptions(),
            _ fields: @escaping @Sendable (URLRequest, Int) -> HeaderFields = { _, _ in
                ["Cache-Control": "max-age=60", "ETag": "\"v\""]
            }
        ) -> ComparedTwins {
            ComparedTwins(.lone, options, store: self == .memory ? .memory : .tiered, fields)
        }
    }

    /// Asks until what is promoted is above and ready.
    private static func settle(_ twins: ComparedTwins, _ request: URLRequest = .get()) async {
        for _ in 0..<6 { await twins.ask(request) }
        #expect(await twins.ask(request).isByFacts)
    }

    @Test("A reload replaces it", arguments: Store.allCases)
    func replaced(_ store: Store) async {
        let twins = store.twins()
        await Self.settle(twins)
        var reload = CallOptions()
        reload.cache = .reload
        #expect(await twins.ask(.get(), reload).text == "2")
        let seen = await twins.ask()
        #expect(seen.text == "2")
        await Self.settle(twins)
        twins.expectSameCounts()
    }

    @Test(
        "A purge by URL, by tag or of everything removes it, and none of it is used any more",
        arguments: Store.allCases
    )
    func purged(_ store: Store) async throws {
        let twins = store.twins()
        var tagged = CallOptions()
        tagged.tags = ["t"]
        let url = try #require(URLRequest.get().url)
        for selection in [CacheSelection.url(url), .tag("t"), .all, .path(url), .olderThan(.seconds(0))] {
            for _ in 0..<7 { await twins.ask(.get(), tagged) }
            #expect(await twins.ask().isByFacts)
            twins.advance(.seconds(1))
            let before = twins.short.transport.sent.count
            try await twins.change { try await $0.cache.remove(selection, now: $0.clock.timestamp) }
            let seen = await twins.ask(.get(), tagged)
            #expect(!seen.isByFacts)
            #expect(seen.sends == before + 1)
        }
        twins.expectSameCounts()
    }

    @Test("After a soft purge it is revalidated first", arguments: Store.allCases)
    func softlyPurged(_ store: Store) async throws {
        let twins = store.twins()
        await Self.settle(twins)
        try await twins.change { try await $0.cache.markStale(.all, now: $0.clock.timestamp) }
        let seen = await twins.ask()
        #expect(!seen.isByFacts)
        #expect(seen.text == "2")
        twins.expectSameCounts()
    }

    @Test("A marked response that cannot be revalidated is never ready")
    func unconfirmable() async throws {
        let twins = ComparedTwins { _, number in number == 0 ? ["Cache-Control": "max-age=60"] : [:] }
        await twins.warm()
        try await twins.change { try await $0.cache.markStale(.all, now: $0.clock.timestamp) }
        for _ in 0..<3 { #expect(await !twins.ask().isByFacts) }
    }

    @Test("Pinning and unpinning change nothing in the answer", arguments: Store.allCases)
    func pinned(_ store: Store) async throws {
        let twins = store.twins()
        await Self.settle(twins)
        try await twins.change { try await $0.cache.pin(.all, now: $0.clock.timestamp) }
        #expect(await twins.ask().text == "1")
        await Self.settle(twins)
        try await twins.change { try await $0.cache.unpin(.all, now: $0.clock.timestamp) }
        #expect(await twins.ask().text == "1")
        await Self.settle(twins)
        twins.expectSameCounts()
    }

    @Test("A 304 freshens it, and its new fields and age are returned")
    func freshened() async {
        let twins = ComparedTwins(
            ComparedSetting { request, number in
                let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "X-Number": "\(number)"]
                return number == 0 ? .respond(200, fields, body: "one") : .respond(304, fields)
            }
        )
        await twins.warm()
        twins.advance(.seconds(60))
        #expect(await twins.ask().source == .revalidated)
        twins.advance(.seconds(5))
        let seen = await twins.warm()
        #expect(seen.text == "one")
        #expect(seen.fields["X-Number"] == "1")
        #expect(seen.fields["Age"] == "5")
        twins.expectSameCounts()
    }

    @Test("Eviction removes it")
    func evicted() async {
        let twins = ComparedTwins()
        await twins.warm()
        await twins.change { ($0.cache.store as? MemoryStore)?.trim(to: 0) }
        let seen = await twins.ask()
        #expect(seen.text == "2")
        twins.expectSameCounts()
    }

    @Test("If the copy in memory was evicted, the lower tier answers")
    func evictedAbove() async {
        let twins = Store.tiered.twins()
        await Self.settle(twins)
        await twins.change { (($0.cache.store as? TieredStore)?.upper as? MemoryStore)?.trim(to: 0) }
        let seen = await twins.ask()
        #expect(!seen.isByFacts)
        #expect(seen.text == "1")
        await Self.settle(twins)
    }

    @Test("A closed store has nothing ready", arguments: Store.allCases)
    func closed(_ store: Store) async {
        let twins = store.twins()
        await Self.settle(twins)
        await twins.change { await $0.cache.close() }
        #expect(await twins.ask().text == "2")
    }

    @Test("An unsafe request invalidates it", arguments: Store.allCases, ["POST", "PUT", "DELETE"])
    func invalidated(_ store: Store, _ method: String) async {
        let twins = store.twins()
        await Self.settle(twins)
        await twins.ask(.request(method, "http://origin.example/a"))
        #expect(await twins.ask().text == "3")
        twins.expectSameCounts()
    }

    @Test("Once stale it is revalidated, in the same second")
    func stale() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60"] }
        await twins.warm()
        twins.advance(.milliseconds(59_999))
        let last = await twins.ask()
        #expect(last.isByFacts)
        #expect(last.decision == CacheDecision(.hit, reason: .fresh, age: 59, freshnessLeft: 1))
        twins.advance(.milliseconds(1))
        #expect(await twins.ask().text == "2")
    }

    @Test("Each of several variants of a URL answers requests with its own values at once")
    func variants() async {
        let twins = ComparedTwins { _, _ in ["Cache-Control": "max-age=60", "Vary": "X-Tenant"] }
        await twins.warm(.get("http://origin.example/a", ["X-Tenant": "a"]))
        await twins.ask(.get("http://origin.example/a", ["X-Tenant": "b"]))
        for tenant in ["a", "b", "a"] {
            let seen = await twins.ask(.get("http://origin.example/a", ["X-Tenant": tenant]))
            #expect(seen.isByFacts)
            #expect(seen.text == (tenant == "a" ? "1" : "2"))
        }
    }

    @Test("Variants that nominate different fields are told apart by the full judgement")
    func differentNames() async {
        let twins = ComparedTwins { request, _ in
            let name = request.value(forHTTPHeaderField: "X-Tenant") == nil ? "X-Other" : "X-Tenant"
            return ["Cache-Control": "max-age=60", "Vary": name]
        }
        let requests = [["X-Tenant": "a"], [:], ["X-Tenant": "a", "X-Other": "b"], ["X-Other": "b"]]
            .map { URLRequest.get("http://origin.example/a", $0) }
        for request in requests + requests + requests { await twins.ask(request) }
        #expect(await !twins.ask(requests[2]).isByFacts)
        twins.expectSameCounts()
    }

    @Test("An entry that its store cannot vouch for is revalidated, although it has the version that was ready")
    func lostPower() async throws {
        let twins = ComparedTwins(.lone, store: StoreMaker { DoubtingStore() }) { _, _ in
            ["Cache-Control": "max-age=60", "ETag": "\"v\""]
        }
        await twins.warm()
        await twins.change { ($0.cache.store as? DoubtingStore)?.doubts.set(true) }
        let seen = await twins.ask()
        #expect(!seen.isByFacts)
        #expect(seen.sends == 2)
    }

    @Test("A response with a long head, or with many lines, is answered alike", arguments: [(90, 1), (1, 63), (1, 70)])
    func longHead(_ kibibytes: Int, _ lineCount: Int) async {
        let twins = ComparedTwins { _, _ in
            var fields: HeaderFields = ["Cache-Control": "max-age=60"]
            for number in 0..<lineCount {
                fields.append(rawName: "X-Long-\(number)", value: String(repeating: "x", count: kibibytes << 10))
            }
            return fields
        }
        for _ in 0..<3 { await twins.ask() }
        #expect(await twins.ask().isByFacts)
        #expect(twins.short.transport.sent.count == 1)
    }

    @Test("A store whose bodies suspend makes nothing ready")
    func suspending() async {
        let twins = ComparedTwins(.lone, store: StoreMaker { FaultyStore() })
        for _ in 0..<5 { #expect(await !twins.ask().isByFacts) }
        twins.expectSameCounts()
    }

    @Test(
        "What is not a fresh hit is looked up as often as by the full judgement alone",
        arguments: ComparedChain.allCases
    )
    func looksOnce(_ chain: ComparedChain) async throws {
        let twins = ComparedTwins(chain) { _, _ in ["Cache-Control": "max-age=5", "ETag": "\"e\""] }
        func expectSameLookups(_ note: Comment) {
            #expect(
                twins.short.caches.map(\.store.statistics.lookups) == twins.long.caches.map(\.store.statistics.lookups),
                note
            )
        }
        for fields in [[:], ["Cookie": "a=b"], ["Authorization": "t"]] {
            let request = URLRequest.get("http://origin.example/a", fields)
            await twins.ask(request)
            expectSameLookups("a miss, \(fields)")
            await twins.ask(request)
            expectSameLookups("a hit, \(fields)")
            twins.advance(.seconds(6))
            await twins.ask(request)
            expectSameLookups("a revalidation, \(fields)")
            await twins.ask(.get("http://origin.example/a", fields.merging(["Range": "bytes=0-0"]) { $1 }))
            expectSameLookups("a range, \(fields)")
        }
    }
}
