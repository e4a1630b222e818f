// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("One fill for a fleet: waiting for what another process fetches (RFC 9111 §4)", .timeLimit(.minutes(20)))
struct FleetFillTests {
    @Test("RFC 9111 §4.4: an unsafe request removes what another process stored for content and for equivalent queries")
    func invalidation() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"utm\")"]
        let bench = FleetBench(GatedOrigin { _, number in .answer(200, fields, "\(number)") })
        bench.origin.open(100)
        let query = URLRequest.asking("QUERY", "content")
        let equivalent = URLRequest.get("http://origin.example/b?q=1&utm=1")
        #expect(try await bench.one.load(query).body == "1")
        #expect(try await bench.one.load(equivalent).body == "2")
        _ = try await bench.other.load(.request("PUT", "http://origin.example/a"))
        _ = try await bench.other.load(.request("PUT", "http://origin.example/b?q=1"))
        #expect(try await bench.one.load(query).body == "5")
        #expect(try await bench.one.load(equivalent).body == "6")
    }

    @Test("50 callers in each of two processes make one request for a cold key, and count as collapsed")
    func coldKey() async throws {
        let bench = FleetBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        let calls = bench.one.calls(50)
        try await bench.origin.asked.wait(for: 1)
        let others = bench.other.calls(50)
        await bench.other.waitForReaders(50)
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open(100)
        for call in calls + others { #expect(try await call.value.body == "one") }
        for call in others { #expect(try await call.value == .collapsed("one")) }
        #expect(bench.sends == 1)
        await bench.waitForQuiet()
        #expect(bench.leases.count == 0 && bench.leases.granted.count == 1)
        let counted = bench.other.cache.statistics
        #expect(counted.collapsed == 50 && counted.allHits == 0 && counted.misses == 0 && counted.requests == 50)
        #expect(counted.collapsedBytes == 150 && counted.hitBytes == 0 && counted.timeSaved == .zero)
        #expect(counted.reasons == [.filledElsewhere: 50])
        #expect(bench.other.waits == ["stored"])
        #expect(try await bench.other.load() == .fresh("one"))
        #expect(bench.leases.asked.count == 2)
    }

    @Test("Cache-Status says that another process's stored response was waited for (RFC 9211 §2.6)")
    func status() async throws {
        var options = CacheOptions()
        options.cacheName = "edge"
        let bench = FleetBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") }, options: options)
        let call = bench.one.call()
        try await bench.origin.asked.wait(for: 1)
        let other = Task { try await bench.other.pipeline.send(.get()) }
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open()
        _ = try await call.value
        let response = try await other.value
        #expect(response.cacheDecision?.description == "collapsed: filled-elsewhere (RFC 9111 §4)")
        #expect(response.fields[.cacheStatus] == "edge;fwd=miss;ttl=60;collapsed;detail=filled-elsewhere")
    }

    @Test("The lease is kept while a body is being stored, and ends with it")
    func streamed() async throws {
        let source = GatedSource([ByteChunk([65]), ByteChunk([66])])
        let bench = FleetBench(GatedOrigin { _, _ in .stream(200, cacheable, source, nil) })
        let call = bench.one.call()
        bench.origin.open()
        source.open()
        try await source.pulled.wait(for: 2)
        let other = bench.other.call()
        try await bench.leases.waits.wait(for: 1)
        for step in 1...2 {
            // The renewal, the other one's patience, and its look at when the lease will have run out.
            await until { bench.clock.sleeperCount >= 3 }
            bench.clock.advance(by: .milliseconds(1_700))
            try await bench.leases.renewed.wait(for: step)
        }
        #expect(bench.leases.count == 1)
        source.open(2)
        #expect(try await call.value.body == "AB")
        #expect(try await other.value == .collapsed("AB"))
        #expect(bench.sends == 1 && bench.leases.count == 0)
    }

    @Test("What was stored between the lookup and the lease is found, and nothing is sent")
    func filledBetween() async throws {
        let bench = FleetBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        bench.other.store.stallsAnswers = true
        let late = bench.other.call()
        try await bench.other.store.lookUps.wait(for: 1)
        bench.origin.open(2)
        #expect(try await bench.one.load() == .network("one"))
        bench.other.store.gate.increment()
        #expect(try await late.value == .fresh("one"))
        #expect(bench.sends == 1 && bench.leases.waits.count == 0)
        #expect(bench.leases.count == 0)
    }

    @Test("A stored response that varies by another value does not serve a waiter: it sends, and does not wait again")
    func variance() async throws {
        let bench = FleetBench(
            GatedOrigin { request, _ in
                let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "X-Tenant"]
                return .answer(200, fields, request.value(forHTTPHeaderField: "X-Tenant") ?? "")
            }
        )
        let call = bench.one.call(.get(with: ["X-Tenant": "a"]))
        try await bench.origin.asked.wait(for: 1)
        let others = bench.other.calls(10, .get(with: ["X-Tenant": "b"]))
        await bench.other.waitForReaders(10)
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open(2)
        #expect(try await call.value.body == "a")
        for call in others { #expect(try await call.value.body == "b") }
        #expect(bench.sends == 2 && bench.leases.waits.count == 1)
    }

    @Test("Requests that may need different responses do not wait for each other")
    func negotiation() async throws {
        let bench = FleetBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        let call = bench.one.call(.get(with: ["Accept-Language": "de"]))
        let other = bench.other.call(.get(with: ["Accept-Language": "en"]))
        try await bench.origin.asked.wait(for: 2)
        bench.origin.open(2)
        #expect(try await call.value == .network("one"))
        #expect(try await other.value == .network("one"))
    }

    @Test("Callers with different credentials neither wait for each other nor get each other's response")
    func principals() async throws {
        let bench = FleetBench(
            GatedOrigin { request, _ in
                .answer(200, cacheable, request.value(forHTTPHeaderField: "Authorization") ?? "")
            }
        )
        let call = bench.one.call(.get(with: ["Authorization": "a"]))
        try await bench.origin.asked.wait(for: 1)
        let other = bench.other.call(.get(with: ["Authorization": "b"]))
        try await bench.origin.asked.wait(for: 2)
        let same = bench.other.call(.get(with: ["Authorization": "a"]))
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open(2)
        #expect(try await call.value.body == "a")
        #expect(try await other.value.body == "b")
        #expect(try await same.value == .collapsed("a"))
        #expect(bench.sends == 2)
    }

    @Test("One process revalidates in the background, and the other only serves stale")
    func refresh() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=10, stale-while-revalidate=60", "ETag": "\"a\""]
        let bench = FleetBench(GatedOrigin { _, number in .answer(200, fields, "\(number)") })
        bench.origin.open()
        _ = try await bench.one.load()
        bench.clock.advance(by: .seconds(20))
        #expect(try await bench.one.load() == .stale("1"))
        try await bench.origin.asked.wait(for: 2)
        let asked = bench.leases.asked.count
        for _ in 0..<5 { #expect(try await bench.other.load() == .stale("1")) }
        await bench.other.waitForQuiet()
        // That somebody is at it is believed for a moment.
        #expect(bench.leases.asked.count == asked + 1)
        bench.origin.open()
        await bench.waitForQuiet()
        #expect(try await bench.other.load() == .fresh("2"))
        #expect(bench.sends == 2 && bench.leases.waits.count == 0)
        #expect(bench.one.cache.statistics.backgroundRevalidations == 1)
        #expect(bench.other.cache.statistics.backgroundRevalidations == 0)
        #expect(bench.other.cache.statistics.backgroundFailures == 0)
    }

    @Test("A validation is shared like a fill", arguments: [304, 200])
    func validation(_ status: Int) async throws {
        let bench = FleetBench(
            GatedOrigin { _, number in
                let fields: HeaderFields = [
                    "Cache-Control": "max-age=10", "ETag": status == 304 ? "\"a\"" : "\"\(number)\"",
                ]
                return number == 1 ? .answer(200, fields, "one") : .answer(status, fields, status == 304 ? "" : "two")
            }
        )
        bench.origin.open()
        _ = try await bench.one.load()
        bench.clock.advance(by: .seconds(20))
        let calls = bench.one.calls(5)
        try await bench.origin.asked.wait(for: 2)
        let others = bench.other.calls(5)
        await bench.other.waitForReaders(5)
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open()
        for call in calls { #expect(try await call.value.body == (status == 304 ? "one" : "two")) }
        for call in others { #expect(try await call.value == .collapsed(status == 304 ? "one" : "two")) }
        #expect(bench.sends == 2)
    }

    @Test(
        "If a caller must accept the response first, the others wait for its decision",
        arguments: [true, false]
    )
    func acceptance(_ accepts: Bool) async throws {
        struct Refused: Error {}
        let bench = FleetBench(GatedOrigin { _, number in .answer(200, cacheable, "\(number)") })
        var options = CallOptions()
        options.acceptance = Acceptance { _ in if !accepts { throw Refused() } }
        let call = bench.one.call(.get(), options)
        try await bench.origin.asked.wait(for: 1)
        let other = bench.other.call()
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open(2)
        _ = try? await call.value
        #expect(try await other.value == (accepts ? .collapsed("1") : .network("2")))
        #expect(bench.leases.count == 0)
    }

    @Test("No lease is requested on a hit, for calls that bypass the store, or if waiting is turned off")
    func cost() async throws {
        var options = CacheOptions()
        options.longestFillWait = .zero
        let alone = FleetBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") }, options: options)
        alone.origin.open()
        _ = try await alone.one.load()
        #expect(alone.leases.asked.count == 0)

        let bench = FleetBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        bench.origin.open(9)
        _ = try await bench.one.load()
        for _ in 0..<3 { #expect(try await bench.other.load() == .fresh("one")) }
        #expect(bench.leases.asked.count == 1)
        var reload = CallOptions()
        reload.cache = .reload
        _ = try await bench.other.load(.get(), reload)
        _ = try await bench.other.load(.get("http://origin.example/other", ["Range": "bytes=0-1"]))
        _ = try await bench.other.load(.get("http://origin.example/third", ["If-None-Match": "\"x\""]))
        #expect(bench.leases.asked.count == 1)
    }

    @Test("A store over another one passes its leases on; a store of one process has none")
    func tiers() {
        let leases = SimulatedLeases(clock: ManualClock())
        let tiered = TieredStore(memory: 1 << 20, over: FleetStore(MemoryStore(capacity: 1 << 20), leasing: leases))
        #expect(tiered.fillLeasing as? SimulatedLeases === leases)
        #expect(MemoryStore(capacity: 1 << 20).fillLeasing == nil)
    }
}
