// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Testing

@Suite("The laws of leases, and the simulated ones", .timeLimit(.minutes(20)))
struct LeaseConformanceTests {
    @Test("Simulated leases keep every law", arguments: LeaseConformance.laws)
    func law(_ law: LeaseConformance.Law) async {
        let clock = ManualClock()
        let leases = SimulatedLeases(clock: clock)
        let subject = LeaseConformance.Subject(one: leases, other: leases) { clock.advance(by: $0) }
        let findings = await law.findings(of: subject, key: StoreKey([1, 2, 3]))
        #expect(findings.isEmpty, "\(findings)")
    }

    @Test("A lost lease service grants nothing and ends all waits")
    func loss() async throws {
        let leases = SimulatedLeases(clock: ManualClock())
        let (key, variant) = (StoreKey([1]), StoreKey([]))
        guard case .granted(let lease) = await leases.lease(key, variant: variant, for: .seconds(5)),
            case .held(let seen) = await leases.lease(key, variant: variant, for: .seconds(5))
        else {
            Issue.record("not granted, or not held")
            return
        }
        async let told = seen.end()
        try await leases.waits.wait(for: 1)
        leases.isAvailable = false
        #expect(await told == nil)
        #expect(await !lease.renew(for: .seconds(5)))
        if case .unavailable = await leases.lease(key, variant: variant, for: .seconds(5)) {
        } else {
            Issue.record("a lost store granted a lease")
        }
    }
}
