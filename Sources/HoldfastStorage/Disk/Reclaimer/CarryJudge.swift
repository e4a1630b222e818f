// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Decides which log gives a segment and which entries of it are carried forward: those that score above the least of all.
///
/// An entry's score is its frequency for its bytes^0.1, as in density TinyLFU. The bar is where 40 % of the bytes of a sample of all
/// entries do not reach it; what is below goes. So a pass over the main log gives back about that share whatever the load is, and what is
/// copied stays in proportion to what is put. How much a reclaim may carry is limited by a credit, not by the segment: three quarters
/// of what was reclaimed so far, less what was carried. One judge serves a store as long as it is open.
/// Figures are in docs/decisions/storage/0016-disk-eviction.md.
package struct CarryJudge: Sendable {
    /// Entries to draw for a bar.
    static let sampleSize = 512
    /// The share of the bytes of a sample that do not reach above the bar, in hundredths.
    private static let goingShare = 40
    /// The exponent of the bytes, in 1/1024.
    package static let beta = 102
    /// The small log's share for each share of a window that hits most; a log's share has dead bytes in it, a window has none.
    private static let smallForWindow = 0.8

    /// An entry of the segment that is reclaimed, to which its row still points.
    package struct Candidate: Sendable, Hashable {
        /// What ``CarryJudge/score(weight:bytes:)`` says.
        var score: Int
        /// The bytes of its record, which carrying copies.
        var recordBytes: Int
        /// The bytes of its blob, which stays where it is.
        var blobBytes = 0
        /// Whether it has to be carried.
        var isPinned = false

        package init(score: Int, recordBytes: Int, blobBytes: Int = 0, isPinned: Bool = false) {
            self.score = score
            self.recordBytes = recordBytes
            self.blobBytes = blobBytes
            self.isPinned = isPinned
        }
    }

    // Sums of bytes that cannot overflow, and quarters of one, are told exactly up to 2^51.
    private let recordReach: Double
    private let blobReach: Double
    private var recordCredit: Double
    private var blobCredit: Double

    /// A judge that has reclaimed nothing, of a store of this capacity.
    package init(capacity: Int, segmentSize: Int) {
        recordReach = 4 * Double(max(0, segmentSize))
        blobReach = Double(max(0, capacity)) / 2
        recordCredit = recordReach
        blobCredit = blobReach
    }

    /// What decides between two entries.
    ///
    /// - Parameters:
    ///   - weight: of the frequency, see ``KeyFrequencies/weight(_:)``.
    ///   - bytes: record and blob.
    ///   - hash: of the key: it decides between entries whose marks are the same. Else a bar that meets many of them would drop
    ///     none, and in the turn after that all.
    package static func score(weight: Int32, bytes: Int, hash: UInt32) -> Int {
        let tieBreaker = (hash &* 0x9E37_79B1) >> (32 - KeyFrequencies.hiddenBits)
        return DensityWeight.score(weight, size: UInt32(clamping: bytes), beta: beta) + Int(tieBreaker)
    }

    /// Which log gives its oldest segment: the main one where that is mostly dead, so that no entry has to go while there is space in
    /// which there is none; else the small one while it holds more than its share, else the main one; where one has no segment to
    /// give, the other; nil when neither has.
    ///
    /// - Parameters:
    ///   - small: the bytes of the small log's segments, the one being written included.
    ///   - total: the bytes of both logs.
    ///   - window: the share of a window that hits most, see ``WindowTrials/share``.
    ///   - isMainDead: whether the main log's oldest segment is mostly dead, see ``isMostlyDead(live:recordBytes:blobBytes:)``.
    package static func log(
        small: Int,
        total: Int,
        window: Double,
        canTakeSmall: Bool,
        canTakeMain: Bool,
        isMainDead: Bool
    ) -> LogKind? {
        guard canTakeSmall || canTakeMain else { return nil }
        if canTakeMain, isMainDead { return .main }
        guard canTakeSmall, canTakeMain else { return canTakeSmall ? .small : .main }
        return Double(small) > smallForWindow * window * Double(total) ? .small : .main
    }

    /// How many entries of each of several lists to draw for a bar, so that every entry has the same chance; all of all if
    /// these are no more than a sample.
    package static func draws(from counts: [Int], using random: inout PolicyRandom) -> [Int] {
        var ends: [Int] = []
        for count in counts { ends.append((ends.last ?? 0) + max(0, count)) }
        var draws = counts.map { _ in 0 }
        guard let total = ends.last, total > sampleSize, total < UInt32.max else { return counts }
        for _ in 0..<sampleSize {
            let place = random.next(below: total)
            var (low, high) = (0, ends.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if ends[middle] > place { high = middle } else { low = middle + 1 }
            }
            draws[low] += 1
        }
        return draws
    }

    /// The least score that is carried, by the entries of a sample; below every score where there is none.
    package static func bar(of sample: [(score: Int, bytes: Int)]) -> Int {
        let sorted = sample.sorted { $0.score < $1.score }
        let total = sorted.reduce(0.0) { $0 + Double(max(0, $1.bytes)) }
        var below = 0.0
        for entry in sorted {
            below += Double(max(0, entry.bytes))
            if below * 100 >= total * Double(goingShare) { return entry.score }
        }
        return .min
    }

    /// Whether what is dead in a segment gives back as much as what is below a bar should.
    ///
    /// - Parameters:
    ///   - live: the bytes of the records that rows still point to.
    ///   - recordBytes: the bytes of all records.
    ///   - blobBytes: the bytes of the blobs that are still there.
    package static func isMostlyDead(live: Int, recordBytes: Int, blobBytes: Int) -> Bool {
        let dead = Double(max(0, recordBytes)) - Double(max(0, live))
        let all = Double(max(0, recordBytes)) + Double(max(0, blobBytes))
        return dead > 0 && dead * 100 >= all * Double(goingShare)
    }

    /// Which of the entries of a segment are carried, in their order; the others go.
    ///
    /// Pinned ones always are. Where the credit does not reach for all above the bar, the best are. Where what is dead gives back as much
    /// as what is below the bar should, there is no bar: a store whose entries are often written anew holds all that it has room for.
    ///
    /// - Parameters:
    ///   - bar: see ``bar(of:)``.
    ///   - recordBytes: the bytes of all records of the segment, dead ones included.
    ///   - blobBytes: the bytes of the blobs that are still there.
    package mutating func carried(of candidates: [Candidate], bar: Int, recordBytes: Int, blobBytes: Int) -> [Bool] {
        recordCredit = Self.raised(recordCredit, by: recordBytes, reach: recordReach)
        blobCredit = Self.raised(blobCredit, by: blobBytes, reach: blobReach)
        let live = candidates.reduce(0) { $0.addingSaturated($1.recordBytes) }
        let bar = Self.isMostlyDead(live: live, recordBytes: recordBytes, blobBytes: blobBytes) ? Int.min : bar
        var isCarried = candidates.map(\.isPinned)
        for candidate in candidates where candidate.isPinned { spend(candidate) }
        let best = candidates.indices.filter { !isCarried[$0] && candidates[$0].score >= bar }
            .sorted { (candidates[$1].score, $0) < (candidates[$0].score, $1) }
        for index in best {
            let candidate = candidates[index]
            guard Double(candidate.recordBytes) <= recordCredit, Double(candidate.blobBytes) <= blobCredit
            else { continue }
            spend(candidate)
            isCarried[index] = true
        }
        return isCarried
    }

    private mutating func spend(_ candidate: Candidate) {
        recordCredit = max(0, recordCredit - Double(max(0, candidate.recordBytes)))
        blobCredit = max(0, blobCredit - Double(max(0, candidate.blobBytes)))
    }

    /// Credits end at what one segment, or what the reach, gives: what was not carried once is not carried later.
    private static func raised(_ credit: Double, by bytes: Int, reach: Double) -> Double {
        let gain = 0.75 * Double(max(0, bytes))
        return min(credit + gain, max(gain, reach))
    }
}

/// The trials that find the small log's share: every look-up asks whether they see its key, which costs no lock, and few are seen.
///
/// They begin once the store is half full; nothing is reclaimed before.
final class SharedTrials: Sendable {
    private struct State {
        var trials: WindowTrials
        /// The entries that the store holds when it is full.
        var expected = 0
        /// Requests seen until ``expected`` is out of date.
        var life = 0
        /// Half-lives since the start: the clocks of shards run apart.
        var time = 0.0
    }

    private let state: Mutex<State>
    /// ``WindowTrials/rarity``; 32 before they begin.
    private let rarity = Atomic<UInt32>(32)

    init(seed: UInt64) {
        state = Mutex(State(trials: WindowTrials(beta: CarryJudge.beta, seed: seed)))
    }

    /// See ``WindowTrials/share``.
    var share: Double { state.withLock { $0.trials.share } }

    /// Begins, if that was not done before.
    func begin() {
        _ = rarity.compareExchange(expected: 32, desired: 0, ordering: .relaxed)
    }

    /// Whether the key with this hash is seen.
    func samples(_ hash: UInt32) -> Bool {
        WindowTrials.samples(hash, rarity: rarity.load(ordering: .relaxed))
    }

    /// Whether it is time for ``expect(_:)``.
    var wantsExpectation: Bool { state.withLock { $0.life <= 0 } }

    /// Notes how many entries the store holds when it is full.
    func expect(_ entries: Int) {
        state.withLock { ($0.expected, $0.life) = (entries, 16) }
    }

    /// Plays a request of a key that is seen; see ``WindowTrials/note(_:size:weight:now:capacity:expected:)``.
    func note(_ hash: UInt32, size: Int, weight: Int32, capacity: Int) {
        state.withLock { state in
            state.life -= 1
            let stands = Double(UInt64(1) << UInt64(state.trials.rarity))
            state.time += stands / Double(KeyFrequencies.halfLife * max(1, state.expected))
            state.trials.note(
                hash,
                size: size,
                weight: weight,
                now: UInt32(truncatingIfNeeded: Int(state.time * Double(DensityWeight.unit))),
                capacity: capacity,
                expected: state.expected
            )
            rarity.store(state.trials.rarity, ordering: .relaxed)
        }
    }
}
