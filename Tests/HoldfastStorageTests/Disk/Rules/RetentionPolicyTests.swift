// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("What a reclaim carries, by density")
struct RetentionPolicyTests {
    private typealias Candidate = RetentionPolicy.Candidate

    @Test(
        "The small log is reclaimed while it holds more than its share of the window's size",
        arguments: [
            (9, 100, 0.1, true, true, LogKind.small), (8, 100, 0.1, true, true, .main),
            (60, 100, 0.7, true, true, .small),
            (0, 0, 0.1, true, true, .main), (1, 100, 0.1, true, false, .small), (90, 100, 0.1, false, true, .main),
            (90, 100, 0.1, false, false, nil),
        ] as [(Int, Int, Double, Bool, Bool, LogKind?)]
    )
    func log(small: Int, total: Int, window: Double, canTakeSmall: Bool, canTakeMain: Bool, expected: LogKind?) {
        for isMainDead in [false, true] {
            let log = RetentionPolicy.log(
                small: small,
                total: total,
                window: window,
                canTakeSmall: canTakeSmall,
                canTakeMain: canTakeMain,
                isMainDead: isMainDead
            )
            // What is dead goes before anything that is not.
            #expect(log == (isMainDead && canTakeMain ? .main : expected))
        }
    }

    @Test("How many entries the store holds is asked at first, and again after sixteen requests")
    func expectation() {
        let tuner = SharedWindowTuner(seed: 1)
        #expect(tuner.wantsExpectation)
        tuner.expect(100)
        for _ in 0..<16 {
            #expect(!tuner.wantsExpectation)
            tuner.note(7, size: 1, weight: 0, capacity: 1_000)
        }
        #expect(tuner.wantsExpectation)
    }

    @Test("The threshold is where two fifths of the bytes do not reach it")
    func bar() {
        #expect(RetentionPolicy.bar(of: []) == .min)
        #expect(RetentionPolicy.bar(of: (0..<100).reversed().map { (score: $0, bytes: 10) }) == 39)
        #expect(
            RetentionPolicy.bar(of: [(score: 5, bytes: .max), (score: 9, bytes: .max), (score: 7, bytes: -1)]) == 5
        )
        #expect(RetentionPolicy.bar(of: [(score: 3, bytes: 1), (score: 1, bytes: 100)]) == 1)
    }

    @Test("What scores at least the threshold is carried, and so is what is pinned")
    func carries() {
        var retention = RetentionPolicy(capacity: 1_000, segmentSize: 100)
        let candidates =
            [4, 9, 2, 5].map { Candidate(score: $0, recordBytes: 10) }
            + [Candidate(score: 0, recordBytes: 10, isPinned: true)]
        let carried = retention.carried(of: candidates, bar: 5, recordBytes: 80, blobBytes: 0)
        #expect(carried == [false, true, false, true, true])
        #expect(retention.carried(of: [], bar: 0, recordBytes: -5, blobBytes: .max) == [])
    }

    @Test(
        "If two fifths are dead there is no threshold",
        arguments: [(83, 0, 2), (84, 0, 4), (84, 2, 2), (200, 0, 4), (0, 0, 2), (.max, .max, 4)]
    )
    func dead(recordBytes: Int, blobBytes: Int, carried: Int) {
        var retention = RetentionPolicy(capacity: 1_000, segmentSize: 100)
        let candidates = [4, 9, 2, 5, 0].prefix(4).map { Candidate(score: $0, recordBytes: $0 == 9 ? 20 : 10) }
        let results = retention.carried(of: candidates, bar: 5, recordBytes: recordBytes, blobBytes: blobBytes)
        #expect(results.count { $0 } == carried)
    }

    @Test("If everything fits into a sample, all is sampled; else as much as the sample, in proportion")
    func draws() {
        var random = PolicyRandom(seed: 3)
        #expect(RetentionPolicy.draws(from: [], using: &random) == [])
        #expect(RetentionPolicy.draws(from: [3, 0, 500, 9], using: &random) == [3, 0, 500, 9])
        let draws = RetentionPolicy.draws(from: [1_000, 0, 3_000, 4_000], using: &random)
        #expect(draws.reduce(0, +) == RetentionPolicy.sampleSize && draws[1] == 0)
        #expect((32...96).contains(draws[0]) && (140...244).contains(draws[2]), "\(draws)")
    }

    @Test("Three quarters of what is reclaimed may be carried, four segments in advance, the best first")
    func credit() {
        var retention = RetentionPolicy(capacity: 10_000, segmentSize: 100)
        let full = (0..<10).map { Candidate(score: $0, recordBytes: 10) }
        var counts: [Int] = []
        for _ in 0..<40 {
            let carried = retention.carried(of: full, bar: .min, recordBytes: 100, blobBytes: 0)
            #expect(carried == (0..<10).map { $0 >= 10 - carried.count { $0 } })
            counts.append(carried.count { $0 })
        }
        // 400 in advance, of which the first takes 100 and each other one 25 more than it gives.
        #expect(counts.prefix(13).allSatisfy { $0 == 10 })
        #expect(counts.suffix(20).reduce(0, +) == 150)
    }

    @Test("A blob alone in its segment may be carried, but not forever")
    func blobs() {
        var retention = RetentionPolicy(capacity: 1_000, segmentSize: 10)
        let blob = Candidate(score: 1, recordBytes: 0, blobBytes: 300)
        let turns = (0..<20).map { _ in retention.carried(of: [blob], bar: 0, recordBytes: 0, blobBytes: 300)[0] }
        #expect(turns[0] && turns.contains(false))
        // Quarters of a byte count.
        var small = RetentionPolicy(capacity: 4, segmentSize: 1)
        let byte = Candidate(score: 1, recordBytes: 0, blobBytes: 1)
        let often = (0..<100).count { _ in small.carried(of: [byte], bar: 0, recordBytes: 0, blobBytes: 1)[0] }
        #expect((74...78).contains(often), "\(often)")
    }

    /// Room is found: however well everything scores, reclaiming enough gives back what is asked for.
    @Test("A quarter of what is reclaimed is freed, less what may be carried in advance", arguments: 0..<20)
    func givesBack(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let (capacity, segment) = (1 << 20, 1 << 12)
        var retention = RetentionPolicy(capacity: capacity, segmentSize: segment)
        var (records, blobs, kept, keptBlobs) = (0, 0, 0, 0)
        for _ in 0..<200 {
            let candidates = (0..<20).map { number in
                let isBlob = number % 7 == seed % 7
                let bytes = Int.random(in: 0...(isBlob ? capacity / 3 : segment / 10), using: &generator)
                return Candidate(score: 1, recordBytes: isBlob ? 100 : bytes, blobBytes: isBlob ? bytes : 0)
            }
            let (sum, blobSum) = candidates.reduce((0, 0)) { ($0.0 + $1.recordBytes, $0.1 + $1.blobBytes) }
            let carried = retention.carried(of: candidates, bar: 0, recordBytes: sum, blobBytes: blobSum)
            for (candidate, isCarried) in zip(candidates, carried) where isCarried {
                kept += candidate.recordBytes
                keptBlobs += candidate.blobBytes
            }
            records += sum
            blobs += blobSum
            #expect(kept <= records * 3 / 4 + 4 * segment && keptBlobs <= blobs * 3 / 4 + capacity / 2, "seed \(seed)")
        }
    }

    @Test("Hits per byte decide, and between equal marks the key, by less than one step of a mark")
    func score() {
        #expect(
            RetentionPolicy.score(weight: 0, bytes: 1 << 20, hash: 5)
                < RetentionPolicy.score(weight: 0, bytes: 1 << 4, hash: 5)
        )
        for hash in 0..<1_000 as Range<UInt32> {
            let score = RetentionPolicy.score(weight: 0, bytes: 1, hash: hash)
            #expect((0..<64).contains(score))
        }
        #expect(RetentionPolicy.score(weight: .max, bytes: .max, hash: .max) > 0)
    }
}
