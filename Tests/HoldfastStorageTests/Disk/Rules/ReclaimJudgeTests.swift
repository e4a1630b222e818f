// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("What reclaim takes and what outlives it")
struct ReclaimJudgeTests {
    private static func row(hits: UInt8 = 0, isPinned: Bool = false) -> IndexRow {
        let place = RecordPlace(slot: 0, unit: 4, units: 7)
        return IndexRow(fragment: 1, variant: 0, place: place, order: 1, hits: hits, isPinned: isPinned)
    }

    @Test(
        "the small log gives while it holds more than its share",
        arguments: [
            (16, 100, true, true, LogKind.small), (15, 100, true, true, .main), (16, 109, true, true, .main),
            (17, 109, true, true, .small), (0, 0, true, true, .main),
            (1, 100, true, false, .small), (90, 100, false, true, .main), (90, 100, false, false, nil),
        ] as [(Int, Int, Bool, Bool, LogKind?)]
    )
    func choosesLog(_ small: Int, _ total: Int, _ canTakeSmall: Bool, _ canTakeMain: Bool, _ log: LogKind?) {
        let chosen = ReclaimJudge.log(
            small: small,
            total: total,
            canTakeSmall: canTakeSmall,
            canTakeMain: canTakeMain
        )
        #expect(chosen == log)
    }

    @Test(
        "entries are carried, evicted or dropped",
        arguments: [
            (.small, 0, false, false, .evict(isRemembered: true)),
            (.main, 0, false, false, .evict(isRemembered: false)),
            (.small, 2, false, false, .carry(hits: 0)), (.main, 2, false, false, .carry(hits: 1)),
            (.small, 0, true, false, .carry(hits: 0)), (.main, 0, true, false, .carry(hits: 0)),
            (.small, 3, true, true, .drop), (.main, 3, false, true, .drop),
        ] as [(LogKind, UInt8, Bool, Bool, ReclaimJudge.Verdict)]
    )
    func judges(_ log: LogKind, _ hits: UInt8, _ isPinned: Bool, _ isUseless: Bool, _ verdict: ReclaimJudge.Verdict) {
        var judge = ReclaimJudge(of: log, weight: 1_000)
        #expect(judge.judge(Self.row(hits: hits, isPinned: isPinned), isUseless: isUseless, weight: 100) == verdict)
    }

    @Test("at most three quarters of a segment are carried, pinned entries aside")
    func carriesThreeQuarters() {
        var judge = ReclaimJudge(of: .main, weight: 1_000)
        let carried = (0..<10).filter { _ in
            judge.judge(Self.row(hits: 1), isUseless: false, weight: 100) == .carry(hits: 0)
        }
        #expect(carried.count == 7)
        #expect(judge.judge(Self.row(isPinned: true), isUseless: false, weight: 500) == .carry(hits: 0))
        #expect(judge.judge(Self.row(hits: 1), isUseless: false, weight: .max) == .evict(isRemembered: false))
    }

    @Test(
        "a tombstone is carried while another segment up to its horizon is there",
        arguments: [
            ([3, 5, 9], 3, 4, false), ([3, 5, 9], 3, 5, true), ([3, 5], 5, 2, false), ([3], 3, 9, false),
            ([], 1, 9, false),
        ]
            as [([UInt64], UInt64, UInt64, Bool)]
    )
    func horizon(_ segments: [UInt64], _ reclaimed: UInt64, _ horizon: UInt64, _ carries: Bool) {
        #expect(TombstoneHorizon(segments: segments, reclaimed: reclaimed).carries(horizon) == carries)
    }
}
