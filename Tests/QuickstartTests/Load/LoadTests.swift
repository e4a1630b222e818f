// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import Quickstart

@Suite("The load", .timeLimit(.minutes(20)))
struct LoadTests {
    @Test("The same seed gives the same calls; another seed gives others", arguments: [0, 1, 9_111, UInt64.max])
    func seeded(_ seed: UInt64) {
        let load = Load(count: 500, resources: 50, seed: seed)
        #expect(load.calls == Load(count: 500, resources: 50, seed: seed).calls)
        #expect(load.calls != Load(count: 500, resources: 50, seed: seed ^ 1).calls)
    }

    @Test("Shares of a Zipf distribution fall with the rank to the power of the exponent, and add up to 1")
    func shares() {
        let zipf = Zipf(count: 300, exponent: 0.9)
        #expect(abs(zipf.share(of: 0) / zipf.share(of: 9) - 7.943) < 0.001)
        #expect(abs((0..<300).reduce(0) { $0 + zipf.share(of: $1) } - 1) < 1e-9)
        #expect(zipf.share(of: 300) == 0)
        #expect(zipf.share(of: -1) == 0)
    }

    @Test("The calls are Zipf-distributed: a chi-square test over ranks", arguments: [1, 2, 3, 9_111] as [UInt64])
    func distribution(_ seed: UInt64) {
        let resources = 40
        let count = 20_000
        let calls = Load(count: count, resources: resources, seed: seed).calls
        var seen = Array(repeating: 0, count: resources)
        for call in calls { seen[call.resource] += 1 }
        let zipf = Zipf(count: resources)
        let chiSquare = (0..<resources).reduce(0.0) { sum, rank in
            let expected = Double(count) * zipf.share(of: rank)
            let difference = Double(seen[rank]) - expected
            return sum + difference * difference / expected
        }
        // 39 degrees of freedom: beyond 90 once in 200,000 right samples.
        #expect(chiSquare < 90, "seed \(seed)")
    }

    @Test("Each language is requested about equally often")
    func languages() {
        let calls = Load(count: 3_000, resources: 10, seed: 4).calls
        for language in Language.allCases {
            let share = Double(calls.count { $0.language == language }) / 3_000
            #expect(abs(share - 1.0 / 3) < 0.05, "\(language)")
        }
    }

    @Test("The first call of each resource is marked, and no other", arguments: [false, true])
    func first(_ beginsWithEach: Bool) {
        let calls = Load(count: 400, resources: 30, seed: 8, beginsWithEach: beginsWithEach).calls
        var known = Set<Int>()
        for call in calls {
            #expect(call.isFirstOfResource == known.insert(call.resource).inserted)
        }
    }

    @Test("A load may begin with each resource once")
    func beginsWithEach() {
        let calls = Load(count: 20, resources: 5, seed: 8, beginsWithEach: true).calls
        #expect(calls.prefix(5).map(\.resource) == [0, 1, 2, 3, 4])
        #expect(calls.count == 20)
        #expect(Load(count: 3, resources: 5, seed: 8, beginsWithEach: true).calls.map(\.resource) == [0, 1, 2])
    }

    @Test("A single resource is requested every time")
    func single() {
        #expect(Load(count: 9, resources: 1, seed: 0).calls.allSatisfy { $0.resource == 0 })
    }
}
