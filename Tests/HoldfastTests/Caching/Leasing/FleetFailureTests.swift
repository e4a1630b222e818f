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

@Suite("One fill for a fleet: failures cost a bounded wait and never a response", .timeLimit(.minutes(20)))
struct FleetFailureTests {
    private static let lost = ServiceError(.connectionLost, "scripted", progress: .headSent)

    private static func failing(_ failures: Int) -> GatedOrigin {
        GatedOrigin { _, number in
            if number <= failures { throw lost }
            return .answer(200, cacheable, "\(number)")
        }
    }

    @Test("If the holder fails, exactly one waiter takes over, and the others keep waiting")
    func takeOver() async throws {
        let bench = FleetBench(Self.failing(1), processes: 4)
        let call = bench.one.call()
        try await bench.origin.asked.wait(for: 1)
        let others = bench.processes.dropFirst().map { $0.calls(10) }
        for process in bench.processes.dropFirst() { await process.waitForReaders(10) }
        try await bench.leases.waits.wait(for: 3)
        bench.origin.open()
        await #expect(throws: ServiceError.self) { try await call.value }
        try await bench.leases.waits.wait(for: 5)
        try await bench.origin.asked.wait(for: 2)
        #expect(bench.sends == 2)
        bench.origin.open(9)
        var own = 0
        for call in others.joined() {
            let answer = try await call.value
            #expect(answer.body == "2")
            if answer.source == .network(attempts: 1) { own += 1 }
        }
        #expect(own == 1 && bench.sends == 2)
        await bench.waitForQuiet()
        #expect(bench.leases.count == 0)
        #expect(bench.processes.dropFirst().map(\.waits).joined().sorted() == ["failed", "stored", "stored"])
    }

    @Test("After a failure response of the origin, one of the others tries", arguments: [503, 429])
    func failureStatus(_ status: Int) async throws {
        let bench = FleetBench(
            GatedOrigin { _, number in number == 1 ? .answer(status, [:], "no") : .answer(200, cacheable, "2") }
        )
        let call = bench.one.call()
        try await bench.origin.asked.wait(for: 1)
        let others = bench.other.calls(5)
        await bench.other.waitForReaders(5)
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open(9)
        #expect(try await call.value.status == status)
        for call in others { #expect(try await call.value.body == "2") }
        #expect(bench.sends == 2)
    }

    @Test("A holder that dies delays the others by at most one lease")
    func crash() async throws {
        var options = CacheOptions()
        options.fillLease = .seconds(2)
        let bench = FleetBench(Self.failing(0), processes: 3, options: options)
        let dead = await bench.takeLease(for: .seconds(2))
        #expect(dead != nil)
        let calls = bench.processes.flatMap { $0.calls(5) }
        try await bench.leases.waits.wait(for: 3)
        #expect(bench.sends == 0)
        bench.clock.advance(by: .seconds(2))
        try await bench.origin.asked.wait(for: 1)
        try await bench.leases.waits.wait(for: 5)
        #expect(bench.sends == 1)
        bench.origin.open()
        for call in calls { #expect(try await call.value.body == "1") }
        dead?.end(.stored)
        #expect(bench.sends == 1)
    }

    @Test("A slow holder is waited for once and no longer than allowed; then the call is sent on its own")
    func patience() async throws {
        let bench = FleetBench(Self.failing(0))
        let held = await bench.takeLease(for: .seconds(600))
        let calls = bench.one.calls(10)
        await bench.one.waitForReaders(10)
        try await bench.leases.waits.wait(for: 1)
        bench.clock.advance(by: .milliseconds(4_999))
        #expect(bench.sends == 0)
        bench.clock.advance(by: .milliseconds(1))
        try await bench.origin.asked.wait(for: 1)
        bench.origin.open(10)
        for call in calls { #expect(try await call.value.body == "1") }
        #expect(bench.sends == 1 && bench.leases.waits.count == 1)
        #expect(bench.one.waits == ["overtime"])
        #expect(bench.one.events.events(.fillAwaited).compactMap(\.delay) == [.seconds(5)])
        held?.end(.failed)
    }

    @Test("A call that has waited joins no call that still waits")
    func noSecondWait() async throws {
        let bench = FleetBench(Self.failing(0))
        let held = await bench.takeLease(for: .seconds(600))
        let lookup = try #require(bench.lookup())
        let pathMark = InvalidationLog().pathMark(of: lookup.key.target)
        let terms = FetchTerms(lookup, nominated: [], tags: [], pathMark: pathMark)
        let waiting = Fetch(terms, deadline: nil, isBackground: false, mayYield: true)
        let fresh = LookupHistory(begun: bench.clock.now)
        let tired = fresh.beyond(Fetch.Elsewhere(outcome: nil, wasAwaited: true))
        #expect(fresh.mayYield && !tired.mayYield)
        if case .joined = waiting.join(until: nil, late: true, yielding: fresh.mayYield) {
        } else {
            Issue.record("a fresh call could not join")
        }
        if case .refused = waiting.join(until: nil, late: true, yielding: tired.mayYield) {
        } else {
            Issue.record("a call that has waited joined one that waits")
        }
        waiting.goAhead()
        if case .joined = waiting.join(until: nil, late: true, yielding: tired.mayYield) {
        } else {
            Issue.record("a call that has waited could not join one that sends")
        }
        held?.end(.failed)
    }

    @Test("A call with little time waits for half of it and keeps the rest for itself")
    func deadline() async throws {
        let bench = FleetBench(Self.failing(0))
        let held = await bench.takeLease(for: .seconds(600))
        var options = CallOptions()
        options.timeout = .seconds(2)
        let call = bench.one.call(.get(), options)
        try await bench.leases.waits.wait(for: 1)
        bench.clock.advance(by: .seconds(1))
        try await bench.origin.asked.wait(for: 1)
        bench.origin.open()
        #expect(try await call.value == .network("1"))
        held?.end(.failed)
    }

    @Test("A call that runs out of time while waiting fails by its deadline, and nothing is left over")
    func overdue() async throws {
        let bench = FleetBench(Self.failing(0))
        let held = await bench.takeLease(for: .seconds(600))
        let patient = bench.one.call()
        await bench.one.waitForReaders(1)
        var options = CallOptions()
        options.timeout = .seconds(2)
        let call = bench.one.call(.get(), options)
        await bench.one.waitForReaders(2)
        try await bench.leases.waits.wait(for: 1)
        await until { bench.clock.sleeperCount >= 3 }
        bench.clock.advance(by: .seconds(2))
        let error = await #expect(throws: ServiceError.self) { try await call.value }
        #expect(error?.code == .deadlineExceeded)
        held?.end(.failed)
        bench.origin.open()
        #expect(try await patient.value == .network("1"))
    }

    @Test(
        "If a response is for one caller only, the others send at once, in parallel, and do not wait again",
        arguments: [("no-store", CacheOptions.Mode.private), ("private, max-age=9", .shared), ("no-store", .shared)]
    )
    func unshareable(_ cacheControl: String, _ mode: CacheOptions.Mode) async throws {
        let bench = FleetBench(
            GatedOrigin { _, number in .answer(200, ["Cache-Control": cacheControl], "\(number)") },
            options: CacheOptions(mode: mode)
        )
        let call = bench.one.call()
        try await bench.origin.asked.wait(for: 1)
        let others = bench.other.calls(20)
        await bench.other.waitForReaders(20)
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open()
        #expect(try await call.value == .network("1"))
        // None of them is answered before all are at the origin.
        try await bench.origin.asked.wait(for: 21)
        bench.origin.open(99)
        var bodies: Set<String> = []
        for call in others { bodies.insert(try await call.value.body) }
        #expect(bodies.count == 20 && bench.leases.waits.count == 1)
        let asked = bench.leases.asked.count
        _ = try await bench.other.load()
        _ = try await bench.one.load()
        #expect(bench.leases.asked.count == asked)
        #expect(bench.other.waits == ["not-shareable"])
    }

    @Test(
        "A response that is revalidated at each use, or does not fit the store, is not waited for twice",
        arguments: [true, false]
    )
    func unusable(_ refusesWrites: Bool) async throws {
        let bench = FleetBench(
            GatedOrigin { _, number in
                .answer(
                    200,
                    ["Cache-Control": refusesWrites ? "max-age=60" : "no-cache", "ETag": "\"\(number)\""],
                    "\(number)"
                )
            }
        )
        bench.one.store.refusesWrites = refusesWrites
        let call = bench.one.call()
        try await bench.origin.asked.wait(for: 1)
        let others = bench.other.calls(5)
        await bench.other.waitForReaders(5)
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open()
        #expect(try await call.value.body == "1")
        try await bench.origin.asked.wait(for: 2)
        await bench.other.waitForReaders(5)
        bench.origin.open(9)
        // Within the process they still share one exchange, unless what comes may be used for no other request
        // (RFC 9111 §5.2.2.4).
        var bodies: Set<String> = []
        for call in others { bodies.insert(try await call.value.body) }
        #expect(bodies.count == (refusesWrites ? 1 : 5) && !bodies.contains("1"))
        #expect(bench.sends == 1 + bodies.count && bench.other.waits == ["not-reusable"])
        let asked = bench.leases.asked.count
        let again = bench.one.call(.get("http://origin.example/a"))
        #expect(try await again.value.status == 200)
        #expect(bench.leases.asked.count == asked)
    }

    @Test(
        "If the other process takes longer than serveStaleAfter, a stale response is served"
    )
    func stalePatience() async throws {
        var options = CacheOptions()
        options.serveStaleAfter = .seconds(1)
        let fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"a\""]
        let bench = FleetBench(GatedOrigin { _, number in .answer(200, fields, "\(number)") }, options: options)
        bench.origin.open()
        _ = try await bench.one.load()
        bench.clock.advance(by: .seconds(20))
        let held = await bench.takeLease(for: .seconds(600))
        let call = bench.one.call()
        try await bench.leases.waits.wait(for: 1)
        await until { bench.clock.sleeperCount >= 3 }
        bench.clock.advance(by: .seconds(1))
        #expect(try await call.value == .stale("1"))
        held?.end(.failed)
        // The fetch goes on without it and takes over.
        try await bench.origin.asked.wait(for: 2)
        bench.origin.open()
        await bench.waitForQuiet()
        #expect(try await bench.one.load() == .fresh("2"))
    }
}
