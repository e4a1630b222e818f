// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct StoredRangesTests {
    @Test("RFC 9111 §3.4: adjacent intervals become one")
    func inserting() {
        var ranges = StoredRanges()
        let steps: [(Range<Int64>, [Range<Int64>])] = [
            (10..<20, [10..<20]), (30..<40, [10..<20, 30..<40]), (0..<5, [0..<5, 10..<20, 30..<40]),
            (12..<15, [0..<5, 10..<20, 30..<40]), (20..<22, [0..<5, 10..<22, 30..<40]),
            (5..<10, [0..<22, 30..<40]), (21..<50, [0..<50]),
        ]
        for (interval, expected) in steps {
            let didInsert = ranges.insert(interval)
            #expect(didInsert && ranges.intervals == expected)
        }
        #expect(ranges.covers(0..<50) && !ranges.covers(0..<51) && !ranges.isComplete)
        let didLearn = ranges.insert(49..<50, completeLength: 50)
        #expect(didLearn && ranges.isComplete)
    }

    @Test(
        "A contradicting part is refused",
        arguments: [
            (5..<5, nil), (-3..<5, nil), (90..<101, nil), (0..<5, 99), (0..<5, 101), (0..<5, -1),
            (200..<300, 300),
        ] as [(Range<Int64>, Int64?)]
    )
    func contradictions(interval: Range<Int64>, length: Int64?) {
        var ranges = StoredRanges(completeLength: 100)
        let didInsert = ranges.insert(interval, completeLength: length)
        #expect(!didInsert && ranges == StoredRanges(completeLength: 100))
    }

    @Test("A length shorter than what is stored is refused")
    func shortLength() {
        var ranges = StoredRanges()
        let first = ranges.insert(50..<60)
        let second = ranges.insert(0..<10, completeLength: 59)
        let third = ranges.insert(0..<10, completeLength: 60)
        #expect(first && !second && third && ranges.completeLength == 60)
    }

    @Test("The number of intervals is bounded, and a part that closes a gap still fits")
    func bound() {
        var ranges = StoredRanges()
        var taken = 0
        for index in 0..<100 where ranges.insert(Int64(index * 2)..<Int64(index * 2 + 1)) { taken += 1 }
        #expect(taken == StoredRanges.maximumIntervals && ranges.intervals.count == taken)
        let didClose = ranges.insert(1..<2)
        #expect(didClose && ranges.intervals.count == taken - 1)
    }

    @Test("Decoded ranges are checked")
    func readingBack() throws {
        let ranges = try #require(StoredRanges(intervals: [5..<9, 0..<2], completeLength: 9))
        #expect(ranges.intervals == [0..<2, 5..<9] && ranges.completeLength == 9)
        #expect(StoredRanges(intervals: ranges.intervals, completeLength: 9) == ranges)
        #expect(StoredRanges(intervals: [5..<10], completeLength: 9) == nil)
        #expect(StoredRanges(intervals: [5..<5], completeLength: 9) == nil)
        #expect(StoredRanges(intervals: [], completeLength: -9) == nil)
        #expect(StoredRanges(completeLength: -9).completeLength == nil)
        #expect(StoredRanges(completeLength: 0).isComplete)
    }

    @Test("RFC 9111 §3.3: the smallest single gap")
    func gaps() throws {
        let ranges = try #require(StoredRanges(intervals: [0..<10, 20..<30, 40..<50], completeLength: 60))
        #expect(ranges.missing(within: 0..<60) == [10..<20, 30..<40, 50..<60])
        #expect(ranges.missingInterval(within: 0..<60) == 10..<60)
        #expect(ranges.missingInterval(within: 5..<25) == 10..<20)
        #expect(ranges.missingInterval(within: 12..<35) == 12..<35)
        #expect(ranges.missingInterval(within: 20..<30) == nil)
        #expect(ranges.missing(within: 7..<7).isEmpty)
        #expect(ranges.missing(within: 0..<Int64.max).last == 50..<Int64.max)
    }

    @Test("Stored ranges behave like a list of bytes", arguments: propertySeeds)
    func model(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<60 {
            let size = Int.random(in: 1...120, using: &source)
            var model = Array(repeating: false, count: size)
            var ranges = StoredRanges(completeLength: Bool.random(using: &source) ? Int64(size) : nil)
            func some() -> Range<Int> {
                let low = Int.random(in: 0..<size, using: &source)
                return low..<Int.random(in: low...min(size, low + 20), using: &source)
            }
            for _ in 0..<20 {
                let interval = some()
                let didInsert = ranges.insert(Int64(interval.lowerBound)..<Int64(interval.upperBound))
                #expect(didInsert == !interval.isEmpty)
                for index in interval { model[index] = true }

                let asked = some()
                let range = Int64(asked.lowerBound)..<Int64(asked.upperBound)
                let missing = asked.filter { !model[$0] }
                #expect(ranges.covers(range) == missing.isEmpty)
                let gaps = ranges.missing(within: range)
                #expect(gaps.flatMap { $0.map { Int($0) } } == missing)
                #expect(gaps.allSatisfy { !$0.isEmpty })
                #expect(ranges.missingInterval(within: range)?.lowerBound == missing.first.map { Int64($0) })
                #expect(ranges.missingInterval(within: range)?.upperBound == missing.last.map { Int64($0 + 1) })
                #expect(ranges.isComplete == (ranges.completeLength != nil && model.allSatisfy { $0 }))
                let pairs = zip(ranges.intervals, ranges.intervals.dropFirst())
                #expect(pairs.allSatisfy { $0.upperBound < $1.lowerBound })
            }
        }
    }
}
