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

@Suite("Fresh hits: any history has the same results on the short and the full path", .timeLimit(.minutes(20)))
struct FreshHitPropertyTests {
    private static let stepCount = 120
    private static let historyCount = max(
        LongTests.areOn ? 30 : 15,
        UInt64(History.steps(percent: 1, among: 10 * stepCount))
    )

    private static func options(seed: UInt64) -> CacheOptions {
        var random = SeededGenerator(seed: seed)
        var options = CacheOptions(mode: Bool.random(using: &random) ? .private : .shared)
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        options.cookiesMayBorrow = !chance(3)
        if chance(4) { options.fixedLifetime = .milliseconds(Int.random(in: 1_000...30_000, using: &random)) }
        if chance(4) { options.maximumLifetime = .milliseconds(Int.random(in: 1_000...30_000, using: &random)) }
        if chance(3) { options.negativeLifetime = .seconds(20) }
        if chance(6) { options.cacheName = "test" }
        if chance(4) { options.query.sortsNames = true }
        if chance(3) { options.staleIfError = .seconds(30) }
        if chance(4) { options.targetedFields = ["X-Other"] }
        options.heuristicFreshness = !chance(4)
        return options
    }

    /// - Returns: how many calls there were, how many were hits, and how many of those were ready.
    private static func history(
        _ chain: ComparedChain,
        _ seed: UInt64,
        store: StoreMaker
    ) async throws -> (calls: Int, hits: Int, ready: Int) {
        let origin = ComparedOrigin(seed: seed, takesTime: seed.isMultiple(of: 2))
        let twins = ComparedTwins(
            ComparedSetting(chain: chain, options: options(seed: seed), store: store) { origin.answer($0, $1) }
        )
        var random = SeededGenerator(seed: seed)
        var (calls, hits) = (0, 0)
        for step in 0..<stepCount {
            let taken = ComparedStep.random(mayRefuse: origin.takesTime || chain != .nested, using: &random)
            let note = "seed \(seed), \(chain), step \(step): \(taken)"
            guard case .call(let request, let body, let options) = taken else {
                try await twins.change { try await $0.take(taken) }
                continue
            }
            calls += 1
            let seen = await twins.ask(request, body: body, options, note: note)
            if seen.source == .fresh { hits += 1 }
        }
        twins.expectSameCounts(note: "seed \(seed), \(chain)")
        return (calls, hits, twins.byFactsCount)
    }

    @Test("In memory", arguments: ComparedChain.allCases, LongTests.areOn ? [0, 100] as [UInt64] : [0])
    func memory(_ chain: ComparedChain, _ base: UInt64) async throws {
        var (hits, ready) = (0, 0)
        for seed in (base + 1_000 * (History.seed - 1))..<(base + 1_000 * (History.seed - 1) + Self.historyCount) {
            let count = try await Self.history(chain, seed, store: .memory)
            hits += count.hits
            ready += count.ready
        }
        // That the short way is taken often is what makes the comparison one.
        #expect(ready * 6 > hits, "\(ready) of \(hits) hits were ready")
        #expect(hits > 13 * Int(Self.historyCount), "\(hits) hits")
    }

    @Test("On disk", arguments: ComparedChain.allCases)
    func disk(_ chain: ComparedChain) async throws {
        var (hits, ready) = (0, 0)
        let seeds: Range<UInt64> = 2_000..<(LongTests.areOn ? 2_012 : 2_005)
        for seed in seeds {
            var stores: [DiskStore] = []
            for _ in 0..<4 {
                stores.append(
                    try await DiskStore.open(
                        directory: "/store",
                        capacity: 4 << 20,
                        fileSystem: SimulatedFileSystem(remembersUnsynced: false),
                        now: StoreInstant(ManualClock().timestamp)
                    )
                )
            }
            let (opened, numbers) = (stores, AnswerNumbers())
            let count = try await Self.history(chain, seed, store: StoreMaker { opened[numbers.next() - 1] })
            hits += count.hits
            ready += count.ready
            for store in stores { await store.close() }
        }
        #expect(ready * 6 > hits, "\(ready) of \(hits) hits were ready")
        #expect(hits > 12 * seeds.count, "\(hits) hits")
    }

    @Test("In memory over another store", arguments: ComparedChain.allCases)
    func tiered(_ chain: ComparedChain) async throws {
        var (hits, ready) = (0, 0)
        let seeds: Range<UInt64> = 1_000..<(LongTests.areOn ? 1_030 : 1_005)
        for seed in seeds {
            let count = try await Self.history(chain, seed, store: .tiered)
            hits += count.hits
            ready += count.ready
        }
        #expect(ready * 10 > hits, "\(ready) of \(hits) hits were ready")
        #expect(hits > 6 * seeds.count, "\(hits) hits")
    }
}
