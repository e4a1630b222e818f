// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("One fill for a fleet: callers and stores that go away", .timeLimit(.minutes(20)))
struct FleetLeavingTests {
    private static func cacheableOrigin() -> GatedOrigin {
        GatedOrigin { _, number in .answer(200, cacheable, "\(number)") }
    }

    @Test("If all callers of the holder leave, another process takes over")
    func cancelledHolder() async throws {
        let bench = FleetBench(Self.cacheableOrigin())
        let calls = bench.one.calls(5)
        await bench.one.waitForReaders(5)
        try await bench.origin.asked.wait(for: 1)
        let other = bench.other.call()
        try await bench.leases.waits.wait(for: 1)
        for call in calls { call.cancel() }
        try await bench.origin.asked.wait(for: 2)
        bench.origin.open(2)
        #expect(try await other.value == .network("2"))
    }

    @Test("A call that is cancelled while waiting ends at once, and requests nothing more")
    func cancelledWaiter() async throws {
        let bench = FleetBench(Self.cacheableOrigin())
        let held = await bench.takeLease(for: .seconds(600))
        let calls = bench.one.calls(5)
        await bench.one.waitForReaders(5)
        try await bench.leases.waits.wait(for: 1)
        for call in calls { call.cancel() }
        for call in calls { await #expect(throws: CancellationError.self) { try await call.value } }
        await bench.waitForQuiet()
        held?.end(.failed)
        #expect(bench.leases.count == 0 && bench.sends == 0)
        #expect(bench.clock.sleeperCount == 0)
    }

    @Test("If a store loses its leases while a call waits, the call continues at once", arguments: [true, false])
    func lostStore(_ isWaiting: Bool) async throws {
        let bench = FleetBench(Self.cacheableOrigin())
        let held = await bench.takeLease(for: .seconds(600))
        if !isWaiting { bench.leases.isAvailable = false }
        let calls = bench.one.calls(5)
        if isWaiting {
            try await bench.leases.waits.wait(for: 1)
            bench.leases.isAvailable = false
        }
        try await bench.origin.asked.wait(for: 1)
        bench.origin.open()
        for call in calls { #expect(try await call.value.body == "1") }
        #expect(bench.sends == 1 && bench.leases.waits.count == (isWaiting ? 1 : 0))
        held?.end(.failed)
    }

    @Test("A holder that never ends keeps its lease for a minute and one lease at most")
    func bound() async throws {
        let bench = FleetBench(Self.cacheableOrigin())
        let call = bench.one.call()
        try await bench.origin.asked.wait(for: 1)
        var seconds = 0
        while bench.leases.count == 1, seconds < 200 {
            await until { bench.clock.sleeperCount >= 1 || seconds >= 60 }
            let renewed = bench.leases.renewed.count
            bench.clock.advance(by: .seconds(2))
            seconds += 2
            if seconds < 60 { try await bench.leases.renewed.wait(for: renewed + 1) }
            if seconds > 61 { await until { bench.clock.sleeperCount == 0 } }
        }
        #expect((60...70).contains(seconds))
        bench.origin.open()
        #expect(try await call.value == .network("1"))
    }

    @Test("A call that is cancelled once it has accepted the response still stores it for the others")
    func cancelledWhenAccepted() async throws {
        let store = FaultyStore()
        store.obeysCancellation.store(true, ordering: .relaxed)
        let bench = FleetBench(Self.cacheableOrigin(), store: store)
        var options = CallOptions()
        options.acceptance = Acceptance { _ in withUnsafeCurrentTask { $0?.cancel() } }
        let call = bench.one.call(.get(), options)
        try await bench.origin.asked.wait(for: 1)
        let other = bench.other.call()
        try await bench.leases.waits.wait(for: 1)
        bench.origin.open(2)
        _ = await call.result
        #expect(try await other.value == .collapsed("1"))
        #expect(bench.sends == 1)
    }
}
