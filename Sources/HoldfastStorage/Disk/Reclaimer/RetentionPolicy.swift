// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Decides which log gives up a segment and which of its entries are carried forward: those that score above a bar.
///
/// An entry's score is its frequency divided by its bytes^0.1, as in density TinyLFU. The bar is where 40 % of the bytes of a
/// sample of all entries do not reach it; entries below are evicted. So a pass over the main log frees about that share whatever
/// the load, and what is copied stays in proportion to what is put. A credit, not the segment, limits how much a reclaim may carry:
/// three quarters of everything reclaimed so far, less what was carried. One policy serves a store for as long as it is open.
/// Figures are in docs/decisions/storage/0016-disk-eviction.md.
package struct RetentionPolicy: Sendable {
    /// How many entries to draw for a bar.
    static let sampleSize = 512
    /// The percentage of the bytes of a sample that do not reach above the bar.
    private static let goingShare = 40
    /// The exponent of the bytes, in 1/1024.
    package static let beta = 102
    /// The small log's share for each share of a window with the most hits; a log's share includes dead bytes, a window has none.
    private static let smallForWindow = 0.8

    /// An entry of the segment being reclaimed that its row still points to.
    package struct Candidate: Sendable, Hashable {
        /// The value of ``RetentionPolicy/score(weight:bytes:)``.
        var score: Int
        /// The bytes of its record, which carrying copies.
        var recordBytes: Int
        /// The bytes of its blob, which stays where it is.
        var blobBytes = 0
        /// Whether it must be carried.
        var isPinned = false

        package init(score: Int, recordBytes: Int, blobBytes: Int = 0, isPinned: Bool = false) {
            self.score = score
            self.recordBytes = recordBytes
            self.blobBytes = blobBytes
            self.isPinned = isPinned
        }
    }

    // Sums of bytes that cannot overflow; they and their quarters are exact up to 2^51.
    private let recordReach: Double
    private let blobReach: Double
    private var recordCredit: Double
    private var blobCredit: Double

    /// A policy that has reclaimed nothing, for a store with this capacity.
    package init(capacity: Int, segmentSize: Int) {
        recordReach = 4 * Double(max(0, segmentSize))
        blobReach = Double(max(0, capacity)) / 2
        recordCredit = recordReach
        blobCredit = blobReach
    }

    /// The value that entries are compared by.
    ///
    /// - Parameters:
    ///   - weight: the weight of its frequency, see ``KeyFrequencies/weight(_:)``.
    ///   - bytes: the bytes of record and blob.
    ///   - hash: the hash of the key, which decides between entries with equal marks. Otherwise, a bar that meets many of them
    ///     would drop none, and in the next pass all.
    package static func score(weight: Int32, bytes: Int, hash: UInt32) -> Int {
        let tieBreaker = (hash &* 0x9E37_79B1) >> (32 - KeyFrequencies.hiddenBits)
        return DensityWeight.score(weight, size: UInt32(clamping: bytes), beta: beta) + Int(tieBreaker)
    }

    /// Which log gives up its oldest segment: the main one if that is mostly dead, so that no entry is evicted while there is dead
    /// space; otherwise the small one if it holds more than its share, and else the main one; if the chosen log has no segment to
    /// give, the other; nil if neither has.
    ///
    /// - Parameters:
    ///   - small: the bytes of the small log's segments, including the one being written.
    ///   - total: the bytes of both logs.
    ///   - window: the window share with the most hits, see ``WindowTuner/share``.
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

    /// How many entries of each of several lists to draw for a bar, so that every entry has the same probability; all of them if
    /// there are no more than a sample.
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

    /// The lowest score that is carried, from the entries of a sample; below every score if there is none.
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

    /// Whether the dead bytes of a segment free as much as evicting the entries below a bar should.
    ///
    /// - Parameters:
    ///   - live: the bytes of the records that rows still point to.
    ///   - recordBytes: the bytes of all records.
    ///   - blobBytes: the bytes of the blobs that still exist.
    package static func isMostlyDead(live: Int, recordBytes: Int, blobBytes: Int) -> Bool {
        let dead = Double(max(0, recordBytes)) - Double(max(0, live))
        let all = Double(max(0, recordBytes)) + Double(max(0, blobBytes))
        return dead > 0 && dead * 100 >= all * Double(goingShare)
    }

    /// Whether reclaiming a segment would free less than two fifths of it even if everything that may be evicted was.
    ///
    /// - Parameters:
    ///   - required: the bytes of what must be carried: pinned entries with their blobs, tombstones and marks.
    ///   - bytes: the bytes of all records, and of the blobs that still exist.
    package static func isMostlyRequired(required: Int, of bytes: Int) -> Bool {
        Double(max(0, required)) * 100 > Double(max(0, bytes)) * Double(100 - goingShare)
    }

    /// Which of the entries of a segment are carried, in their order; the others are evicted.
    ///
    /// Pinned ones always are. If the credit is not enough for all above the bar, the best are. If the dead bytes free as much as
    /// evicting the entries below the bar should, there is no bar: a store whose entries are often rewritten keeps everything that
    /// it has room for.
    ///
    /// - Parameters:
    ///   - bar: see ``bar(of:)``.
    ///   - recordBytes: the bytes of all records of the segment, including dead ones, but not tombstones and marks that may still
    ///     be needed.
    ///   - blobBytes: the bytes of the blobs that still exist.
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

    /// Credits are limited to what one segment, or the reach, gives: what was not carried now is not carried later instead.
    private static func raised(_ credit: Double, by bytes: Int, reach: Double) -> Double {
        let gain = 0.75 * Double(max(0, bytes))
        return min(credit + gain, max(gain, reach))
    }
}

/// The tuner that finds the small log's share: every lookup asks whether it samples its key, which costs no lock, and few keys are
/// sampled.
///
/// It begins once the store is half full; nothing is reclaimed before.
final class SharedWindowTuner: Sendable {
    private struct State {
        var tuner: WindowTuner
        /// How many entries the store holds when it is full.
        var expected = 0
        /// How many more requests until ``expected`` is outdated.
        var life = 0
        /// Half-lives since the start: the clocks of shards differ.
        var time = 0.0
    }

    private let state: Mutex<State>
    /// ``WindowTuner/samplingShift``; 32 before it begins.
    private let samplingShift = Atomic<UInt32>(32)

    init(seed: UInt64) { state = Mutex(State(tuner: WindowTuner(beta: RetentionPolicy.beta, seed: seed))) }

    /// See ``WindowTuner/share``.
    var share: Double { state.withLock { $0.tuner.share } }

    /// Begins, unless already begun.
    func begin() {
        _ = samplingShift.compareExchange(expected: 32, desired: 0, ordering: .relaxed)
    }

    /// Whether the key with this hash is sampled.
    func samples(_ hash: UInt32) -> Bool {
        WindowTuner.samples(hash, samplingShift: samplingShift.load(ordering: .relaxed))
    }

    /// Whether it is time for ``expect(_:)``.
    var wantsExpectation: Bool { state.withLock { $0.life <= 0 } }

    /// Sets how many entries the store holds when it is full.
    func expect(_ entries: Int) {
        state.withLock { ($0.expected, $0.life) = (entries, 16) }
    }

    /// Records a request for a sampled key; see ``WindowTuner/note(_:size:weight:now:capacity:expected:)``.
    func note(_ hash: UInt32, size: Int, weight: Int32, capacity: Int) {
        state.withLock { state in
            state.life -= 1
            let stands = Double(UInt64(1) << UInt64(state.tuner.samplingShift))
            state.time += stands / Double(KeyFrequencies.halfLife * max(1, state.expected))
            state.tuner.note(
                hash,
                size: size,
                weight: weight,
                now: UInt32(truncatingIfNeeded: Int(state.time * Double(DensityWeight.unit))),
                capacity: capacity,
                expected: state.expected
            )
            samplingShift.store(state.tuner.samplingShift, ordering: .relaxed)
        }
    }
}
