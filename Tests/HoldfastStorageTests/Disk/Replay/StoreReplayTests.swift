// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("A store has the hits of its policy", .timeLimit(.minutes(20)))
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

    /// Not hit for hit: hashes are keyed by the directory's secret, so what draws decide differs from store to store, and marks are noted and
    /// segments reclaimed a little earlier or later.
    private static func expectAgreement(_ replay: StoreReplay, within tolerance: Double, alike: Double) async throws {
        let (store, refused, hits) = try await replay.store()
        let (policy, policyHits) = replay.policy()
        let same = Double(zip(hits, policyHits).count { $0 == $1 }) / Double(hits.count)
        let text = Comment(
            rawValue: """
                store \(store.objectHitRatio) \(store.byteHitRatio), policy \(policy.objectHitRatio) \(policy.byteHitRatio), \
                alike \(same); \(store) \(policy)
                """
        )
        #expect(hits.count == policyHits.count && same >= alike, text)
        #expect(abs(store.objectHitRatio - policy.objectHitRatio) < tolerance, text)
        #expect(abs(store.byteHitRatio - policy.byteHitRatio) < tolerance, text)
        #expect(store.hits > store.requests / 20, text)
        // Now and then the least store has all its bytes in tables and tombstones of segments that wait.
        // How often depends on how far the threads that seal and sync are behind.
        #expect(refused <= store.requests / 1_000, text)
    }

    /// A small store has few segments: those open, made in advance and kept back weigh more, and so do tables and tombstones.
    @Test("On generated requests", arguments: [(1 << 20, 0.09, 0.85), (3 << 20, 0.03, 0.9)])
    func synthetic(capacity: Int, tolerance: Double, alike: Double) async throws {
        let trace = Self.synthetic(seed: 5, requests: 40_000)
        try await Self.expectAgreement(
            StoreReplay(trace: trace, capacity: capacity),
            within: tolerance,
            alike: alike
        )
    }

    /// 60 entries of 8 KiB, a sixth of the capacity, then seven capacities of what is asked for once.
    @Test("A scan of keys requested once keeps what is requested often, and a reopened store starts anew")
    func scan() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        func open() async throws -> DiskStore {
            try await DiskStore.open(directory: "/store", capacity: 3 << 20, fileSystem: files, now: .at(0))
        }
        let store = try await open()
        let body = [UInt8](repeating: 5, count: 8 << 10)
        func hits(_ store: DiskStore) async throws -> Int {
            var hits = 0
            for key in 0..<60 where try await !store.entries(for: StoreKey("often \(key)"), now: .at(0)).isEmpty {
                hits += 1
            }
            return hits
        }
        for key in 0..<60 { try await store.put("often \(key)", body) }
        for _ in 0..<12 { #expect(try await hits(store) == 60) }
        for key in 0..<2_600 {
            #expect(try await store.entries(for: StoreKey("once \(key)"), now: .at(0)).isEmpty)
            try await store.put("once \(key)", body)
        }
        #expect(store.statistics.entriesEvicted > 2_000)
        #expect(try await hits(store) >= 57)
        await store.close()
        // What was asked for how often is in memory alone.
        let again = try await open()
        let listed = try await again.listed(limit: 1_000)
        #expect(listed.count > 250 && listed.allSatisfy { $0.hits == 0 })
        await again.close()
    }

    @Test("On recorded requests", .enabled(if: hasTraces, "the open traces are not beside the package"))
    func recorded() async throws {
        let bytes = [UInt8](try Data(contentsOf: Self.traces.appendingPathComponent("bu98.trace")))
        let trace = RequestTrace(decoding: Array(bytes.prefix(20_000 * 12)))
        try await Self.expectAgreement(StoreReplay(trace: trace, capacity: 3 << 20), within: 0.02, alike: 0.93)
    }
}
