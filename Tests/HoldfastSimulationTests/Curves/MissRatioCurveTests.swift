// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Miss-ratio curves")
struct MissRatioCurveTests {
    private let curve = MissRatioCurve(
        name: "x",
        points: [(1_000, 0.2), (10, 0.8), (100, 0.6), (0, 1), (.infinity, 0), (5, .nan)]
            .map { MissRatioCurve.Point(size: $0.0, missRatio: $0.1) }
    )

    @Test("Points are in the order of their sizes, and invalid sizes are left out")
    func order() {
        #expect(curve.points.map(\.size) == [10, 100, 1_000])
    }

    @Test("Between two points the line is straight over the logarithm; outside nothing is extrapolated")
    func between() throws {
        #expect(curve.missRatio(at: 10) == 0.8 && curve.missRatio(at: 1_000) == 0.2)
        #expect(abs(try #require(curve.missRatio(at: 1_000.0.squareRoot())) - 0.7) < 1e-12)
        #expect(abs(try #require(curve.missRatio(at: 100_000.0.squareRoot())) - 0.4) < 1e-12)
        for size in [9.99, 1_000.1, 0, -1] { #expect(curve.missRatio(at: size) == nil) }
        #expect(MissRatioCurve(name: "", points: []).missRatio(at: 1) == nil)
    }

    @Test("The smallest size with at most the given miss ratio")
    func smallest() {
        #expect(curve.smallestSize(missingAtMost: 0.6) == 100)
        #expect(curve.smallestSize(missingAtMost: 0.59) == 1_000)
        #expect(curve.smallestSize(missingAtMost: 0.1) == nil)
    }

    @Test("A policy's curve is its miss ratio at each size, in either measure")
    func ofPolicy() throws {
        var trace = RequestTrace()
        for key: UInt64 in [1, 2, 1, 2, 3, 1] { trace.append(key: key, size: key == 3 ? 20 : 10) }
        let sizes = try #require(CacheSize.list("10,20,100"))
        let expectedMisses: [Double] = [1, 1 - 2.0 / 6, 0.5]
        #expect(MissRatioCurve(.lru, trace: trace, sizes: sizes).points.map(\.missRatio) == expectedMisses)
        let bytes = MissRatioCurve(.lru, trace: trace, sizes: sizes, measure: .byte)
        let expected: [Double] = [0, 20, 30].map { 1 - $0 / 70 }
        #expect(bytes.points.map(\.missRatio) == expected)
        #expect(bytes.name == "lru")
    }

    @Test("The curve of a sample has the sizes of the whole")
    func ofSample() throws {
        var trace = RequestTrace()
        for key: UInt64 in [1, 2, 1, 2] { trace.append(key: key, size: 10) }
        let curve = MissRatioCurve(.lru, trace: trace, sizes: try #require(CacheSize.list("100,200")), rate: 0.1)
        #expect(curve.points.map(\.size) == [100, 200])
        #expect(curve.points.map(\.missRatio) == [1, 0.5])
    }

    @Test("A rate above 1, and none that is a number, is that of all keys", arguments: [2, Double.infinity, .nan])
    func ofAllKeys(_ rate: Double) throws {
        var trace = RequestTrace()
        for key: UInt64 in [1, 2, 1, 2] { trace.append(key: key, size: 10) }
        let sizes = try #require(CacheSize.list("10,20"))
        let whole = MissRatioCurve(.lru, trace: trace, sizes: sizes)
        #expect(MissRatioCurve(.lru, trace: trace, sizes: sizes, rate: rate) == whole)
        #expect(MissRatioCurve(.lru, trace: trace, sizes: sizes, rate: 0).points.isEmpty)
    }
}
