// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import Testing

@testable import HitRateBenchmark

@Suite("The generated trace")
struct SyntheticTraceTests {
    @Test("It is the same for a seed, and different for another")
    func seeds() {
        let trace = SyntheticTrace.make(seed: 1, requests: 2_000)
        #expect(trace.requests == SyntheticTrace.make(seed: 1, requests: 2_000).requests)
        #expect(trace.requests != SyntheticTrace.make(seed: 2, requests: 2_000).requests)
        #expect(trace.requests.count == 2_000 && trace.changes == 0)
    }

    @Test("A tenth is requested once, and few keys have most of the rest", arguments: [1, 2, 3] as [UInt64])
    func shape(seed: UInt64) {
        let trace = SyntheticTrace.make(seed: seed, requests: 50_000)
        var counts = [Int](repeating: 0, count: trace.keyCount)
        for request in trace.requests { counts[Int(request.key)] += 1 }
        counts.sort(by: >)
        #expect(counts.prefix(trace.keyCount / 100).reduce(0, +) > 10_000, "seed \(seed)")
        #expect(counts.count { $0 == 1 } > 5_000, "seed \(seed)")
        #expect((0.3...0.6).contains(trace.unboundedObjectHitRatio), "seed \(seed)")
    }
}
