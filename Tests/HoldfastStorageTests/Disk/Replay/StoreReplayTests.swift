// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("A store hits what its policy hits", .timeLimit(.minutes(20)))
struct StoreReplayTests {
    private static let traces = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("../shared/traces").standardizedFileURL
    private static let hasTraces = FileManager.default.fileExists(atPath: traces.path)

    /// A few popular keys, a long tail, and one in eight requests for something that is never asked for again.
    private static func synthetic(seed: UInt64, requests: Int) -> RequestTrace {
        var generator = SeededGenerator(seed: seed)
        var trace = RequestTrace()
        for number in 0..<requests {
            if number % 8 == 0 {
                trace.append(key: UInt64(1_000_000 + number), size: UInt32.random(in: 200...12_000, using: &generator))
                continue
            }
            let uniform = Double.random(in: 0..<1, using: &generator)
            let key = UInt64(2_000 * uniform * uniform * uniform)
            trace.append(key: key, size: UInt32(300 + key &* 7_919 % 9_000))
        }
        return trace
    }

    private static func expectAgreement(_ replay: StoreReplay, within tolerance: Double) async throws {
        let (store, refused) = try await replay.store()
        let policy = replay.policy()
        let text = Comment(
            rawValue:
                "store \(store.objectHitRatio) \(store.byteHitRatio), policy \(policy.objectHitRatio) \(policy.byteHitRatio); \(store) \(policy)"
        )
        #expect(abs(store.objectHitRatio - policy.objectHitRatio) < tolerance, text)
        #expect(abs(store.byteHitRatio - policy.byteHitRatio) < tolerance, text)
        #expect(store.hits > store.requests / 20, text)
        // Now and then the least store has all its bytes in tables and tombstones of segments that wait.
        // How often depends on how far the threads that seal and sync are behind.
        #expect(refused <= store.requests / 1_000, text)
    }

    /// A small store has few segments: those open, made in advance and kept back weigh more, and so do tables and tombstones.
    @Test("on requests of our own", arguments: [(1 << 20, 0.09), (3 << 20, 0.03)])
    func synthetic(capacity: Int, tolerance: Double) async throws {
        let trace = Self.synthetic(seed: 5, requests: 40_000)
        try await Self.expectAgreement(StoreReplay(trace: trace, capacity: capacity), within: tolerance)
    }

    @Test("on requests that were recorded", .enabled(if: hasTraces, "the open traces are not beside the package"))
    func recorded() async throws {
        let bytes = [UInt8](try Data(contentsOf: Self.traces.appendingPathComponent("bu98.trace")))
        let trace = RequestTrace(decoding: Array(bytes.prefix(20_000 * 12)))
        try await Self.expectAgreement(StoreReplay(trace: trace, capacity: 3 << 20), within: 0.02)
    }
}
