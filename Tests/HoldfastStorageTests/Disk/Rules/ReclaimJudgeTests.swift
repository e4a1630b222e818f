// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("What reclaim takes and what outlives it")
struct ReclaimJudgeTests {
    /// Ten entries of 100 bytes worth 0, 100 ... 900: the lines lie at 0, 200 and 500.
    private static let sample = WorthSample(
        (0..<10).map { WorthSample.Draw(worth: Int32($0 * 100), bytes: 100, segment: UInt16($0 / 5)) },
        entries: 10
    )

    private static func judge(share: Double = 0.1, turn: Int = 0) -> ReclaimJudge {
        ReclaimJudge(sample: sample, share: share, turn: turn)
    }

    private static func candidate(_ worth: Int32, used: Bool = false, pinned: Bool = false) -> ReclaimJudge.Candidate {
        ReclaimJudge.Candidate(worth: worth, bytes: 100, wasUsed: used, isPinned: pinned)
    }

    @Test(
        "the small log gives while it holds more than its share",
        arguments: [
            (11, 100, true, true, LogKind.small), (10, 100, true, true, .main), (0, 0, true, true, .main),
            (1, 100, true, false, .small), (90, 100, false, true, .main), (90, 100, false, false, nil),
        ] as [(Int, Int, Bool, Bool, LogKind?)]
    )
    func choosesLog(_ small: Int, _ total: Int, _ canTakeSmall: Bool, _ canTakeMain: Bool, _ log: LogKind?) {
        let chosen = Self.judge().log(
            small: small,
            total: total,
            canTakeSmall: canTakeSmall,
            canTakeMain: canTakeMain
        )
        #expect(chosen == log)
    }

    @Test("a wide share lets the small log grow")
    func wideShare() {
        #expect(Self.judge(share: 0.6).log(small: 60, total: 100, canTakeSmall: true, canTakeMain: true) == .main)
    }

    @Test(
        "entries are carried or go by their worth",
        arguments: [
            (.small, 0, false, false, false), (.small, 101, false, false, true), (.small, 0, true, false, true),
            (.small, 0, false, true, true), (.main, 200, false, false, false), (.main, 201, false, false, true),
            (.main, 200, true, false, false), (.main, 0, false, true, true),
        ] as [(LogKind, Int32, Bool, Bool, Bool)]
    )
    func judges(_ log: LogKind, _ worth: Int32, _ wasUsed: Bool, _ isPinned: Bool, _ carries: Bool) {
        let candidate = Self.candidate(worth, used: wasUsed, pinned: isPinned)
        #expect(Self.judge().carries([candidate], of: log, weight: 1_000) == [carries])
    }

    @Test(
        "at most seven tenths of a segment of the main log are carried, the worthiest, of equals the newest, and pins aside"
    )
    func carriesSevenTenths() {
        let worths: [Int32] = [500, 900, 500, 400, 900, 900, 900, 900, 500, 900]
        let carries = Self.judge().carries(worths.map { Self.candidate($0) }, of: .main, weight: 1_000)
        #expect(carries == [false, true, false, false, true, true, true, true, true, true])
        let pinned = Self.judge().carries(worths.map { Self.candidate($0, pinned: true) }, of: .main, weight: 1_000)
        #expect(!pinned.contains(false))
        // The small log need not give anything: the main one does.
        #expect(!Self.judge().carries(worths.map { Self.candidate($0) }, of: .small, weight: 1_000).contains(false))
    }

    @Test("what finds no room goes, the least worthy first, and pins stay")
    func room() {
        let worths: [Int32] = [900, 300, 700, 800]
        var candidates = worths.map { worth in
            ReclaimJudge.Candidate(worth: worth, bytes: 100, wasUsed: true, copyBytes: 100)
        }
        candidates[1].isPinned = true
        #expect(Self.judge().carries(candidates, of: .small, weight: 1_000, room: 250) == [true, true, false, false])
        #expect(Self.judge().carries(candidates, of: .main, weight: 1_000, room: 0) == [false, true, false, false])
    }

    @Test("a segment of one entry gives it")
    func single() {
        let candidate = ReclaimJudge.Candidate(worth: .max, bytes: 1, wasUsed: true)
        #expect(Self.judge().carries([candidate], of: .main, weight: 1) == [false])
        let huge = ReclaimJudge.Candidate(worth: .max, bytes: .max, wasUsed: true)
        #expect(Self.judge().carries([huge, huge], of: .main, weight: .max).count == 2)
    }

    @Test("the main segment goes that holds most of what is worth little for its age; now and then the oldest")
    func victims() {
        let segments = [1, 0].map { ReclaimJudge.Segment(slot: $0, weight: 500) }
        #expect(Self.judge().victim(ofMain: segments) == 1)
        let equals = [7, 8].map { ReclaimJudge.Segment(slot: $0, weight: 500) }
        #expect(Self.judge().victim(ofMain: equals) == 0)
        #expect(Self.judge(turn: ReclaimJudge.oldestEvery - 1).victim(ofMain: segments) == 0)
    }

    @Test("a new entry enters the small log, the main one when its key is known to be worth it", arguments: [500, 501])
    func entersLog(_ worth: Int32) {
        let log = ReclaimJudge.log(ofNew: worth, promotion: Self.sample.promotion)
        #expect(log == (worth > 500 ? .main : .small))
    }

    @Test(
        "a tombstone is carried while another segment up to its horizon is there",
        arguments: [
            ([3, 5, 9], 3, 4, false), ([3, 5, 9], 3, 5, true), ([3, 5], 5, 2, false), ([3], 3, 9, false),
            ([], 1, 9, false), ([3, 5, 9], 5, 4, true),
        ]
            as [([UInt64], UInt64, UInt64, Bool)]
    )
    func horizon(_ segments: [UInt64], _ reclaimed: UInt64, _ horizon: UInt64, _ carries: Bool) {
        #expect(TombstoneHorizon(segments: segments, reclaimed: reclaimed).carries(horizon) == carries)
    }
}
