// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

/// The public traces beside the checkout, where they are.
private enum OpenTraces {
    static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("../shared/traces")
    static var arePresent: Bool { FileManager.default.fileExists(atPath: folder.path) }
    static var areAllAsked: Bool { arePresent && ProcessInfo.processInfo.environment["HIT_RATE_CELLS"] == "all" }
    static let names = [
        "arc_oltp", "bu98", "c2k_web07", "cloudphysics_io", "corda_vault", "cran_dec14", "lirs_2pools", "lirs_multi3",
        "scarab_recs", "tencent_ns1326", "twitter52_a", "zipf_open",
    ]

    static func trace(_ name: String) throws -> RequestTrace {
        RequestTrace(decoding: [UInt8](try Data(contentsOf: folder.appendingPathComponent(name + ".trace"))))
    }
}

@Suite("Density TinyLFU's hit ratios", .timeLimit(.minutes(30)))
struct DensityTinyLFURatioTests {
    private func replay(
        _ requests: [RequestTrace.Request],
        _ strategy: EvictionStrategy,
        _ capacity: Int,
        seed: UInt64 = 1
    )
        -> HitRateResult
    {
        var simulator = HitRateSimulator()
        simulator.add(strategy, capacity: capacity, seed: seed)
        for request in requests { simulator.replay(key: request.key, size: request.size) }
        return simulator.results[0]
    }

    private func requests(_ keys: some Sequence<Int>) -> [RequestTrace.Request] {
        var trace = RequestTrace()
        for key in keys { trace.append(key: UInt64(key), size: 1) }
        return trace.requests
    }

    /// Each key twice, so many other new keys apart.
    private func recent(_ count: Int, apart distance: Int, from first: Int) -> [Int] {
        (first..<first + count).flatMap { [$0, $0 - distance] }
    }

    @Test(
        "Single cells of the study, with half a point of tolerance",
        .enabled(if: OpenTraces.arePresent, "needs the public traces"),
        arguments: [
            ("c2k_web07", 0.01, 0.4331), ("lirs_multi3", 0.01, 0.2239),
            ("corda_vault", 0.001, 0.3267),
        ]
    )
    func cells(name: String, part: Double, study: Double) throws {
        let trace = try OpenTraces.trace(name)
        let result = replay(trace.requests, .memory, Int(Double(trace.uniqueBytes) * part))
        #expect(result.objectHitRatio >= study - 0.005, "\(result.objectHitRatio)")
    }

    @Test(
        "The open means: beta 0.5 for objects, beta 0.1 for bytes, and the same over segments",
        .enabled(if: OpenTraces.areAllAsked, "needs the public traces and HIT_RATE_CELLS=all"),
        arguments: [
            (.densityTinyLFU(beta: 0.5), 0.365, 0.320), (.densityTinyLFU(beta: 0.1), 0.347, 0.3296),
            (.disk, 0.345, 0.328),
        ] as [(EvictionStrategy, Double, Double)]
    )
    func means(strategy: EvictionStrategy, objects: Double, bytes: Double) throws {
        var sum = (objects: 0.0, bytes: 0.0, cells: 0.0)
        var written = (sum: 0.0, most: 0.0)
        for name in OpenTraces.names {
            let trace = try OpenTraces.trace(name)
            for part in [0.001, 0.01, 0.1] {
                let result = replay(trace.requests, strategy, Int(Double(trace.uniqueBytes) * part))
                let put = max(1, result.writtenBytes)
                let amplification = Double(result.writtenBytes + result.movedBytes) / Double(put)
                written = (written.sum + amplification, max(written.most, amplification))
                sum = (sum.objects + result.objectHitRatio, sum.bytes + result.byteHitRatio, sum.cells + 1)
            }
        }
        #expect(sum.cells == 36)
        #expect(sum.objects / sum.cells >= objects, "\(sum.objects / sum.cells)")
        #expect(sum.bytes / sum.cells >= bytes, "\(sum.bytes / sum.cells)")
        #expect(written.sum / sum.cells <= 1.2 && written.most <= 2.5, "\(written.sum / sum.cells), \(written.most)")
    }

    @Test(
        "The study's stress: a recency trace, a loop of twice the size, the same trace again",
        .enabled(if: OpenTraces.areAllAsked, "needs the public traces and HIT_RATE_CELLS=all")
    )
    func stress() throws {
        let corda = try OpenTraces.trace("corda_vault").requests.map { Int($0.key) }
        let loop = (0..<1_000_000).map { 1_000_000 + $0 % 1_000 }
        let all = requests(corda + loop + corda)
        // The study: W-TinyLFU with a climber 45.3 %, density TinyLFU with a climber 35.7 %, LRU 7.1 %.
        #expect(replay(all, .memory, 512).objectHitRatio > 0.44)
        #expect(replay(all, .lru, 512).objectHitRatio < 0.08)
        #expect(replay(all, .memory, 5_000).objectHitRatio > 0.855)
    }

    @Test("The window follows from recency to a loop and back", arguments: [64, 512])
    func phases(capacity: Int) {
        let distance = capacity / 3
        let before = recent(60 * capacity, apart: distance, from: distance)
        let loop = (0..<120 * capacity).map { 10_000_000 + $0 % (2 * capacity) }
        let after = recent(60 * capacity, apart: distance, from: 20_000_000)
        // At best 50 % of each phase; LRU has nothing of the loop.
        let result = replay(requests(before + loop + after), .memory, capacity)
        #expect(result.objectHitRatio > 0.40, "\(result.objectHitRatio)")
        #expect(replay(requests(before + loop + after), .lru, capacity).objectHitRatio < 0.34)
    }

    @Test("Seeds move a ratio by little", arguments: [1, 2, 3, 4] as [UInt64])
    func seeds(seed: UInt64) {
        var generator = SeededGenerator(seed: 9)
        let keys = (0..<20_000).map { _ in Int(2_000 * pow(Double.random(in: 0...1, using: &generator), 3)) }
        let all = requests(keys)
        let one = replay(all, .memory, 200, seed: 0).objectHitRatio
        #expect(abs(replay(all, .memory, 200, seed: seed).objectHitRatio - one) < 0.015)
        #expect(replay(all, .memory, 200, seed: seed) == replay(all, .memory, 200, seed: seed))
        #expect(one > replay(all, .lru, 200).objectHitRatio + 0.03)
    }
}
