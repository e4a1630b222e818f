// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What ``SegmentedPolicy`` knows where ``CarryJudge`` rules: what a store has beside its rows.
struct SegmentDensity: Sendable {
    var frequencies: KeyFrequencies
    var trials: WindowTrials
    var judge: CarryJudge
    var random: PolicyRandom
    /// The least score that is carried.
    private(set) var bar = Int.min
    /// Requests until the next sample is due.
    private var barLife = 0

    /// Nothing was asked for yet.
    init(capacity: Int, segmentSize: Int, seed: UInt64) {
        frequencies = KeyFrequencies(seed: seed)
        trials = WindowTrials(beta: CarryJudge.beta, seed: seed)
        judge = CarryJudge(capacity: capacity, segmentSize: segmentSize)
        random = PolicyRandom(seed: seed &+ 1)
    }

    /// The bytes of memory taken.
    var bytes: Int { frequencies.bytes + trials.bytes }

    /// Whether the bar was taken too long ago. One for each reclaim is more than segments of a single entry need.
    var wantsBar: Bool { barLife <= 0 }

    /// Takes the bar from a sample of the entries, of which there are `count`.
    mutating func setBar(by sample: [(score: Int, bytes: Int)], count: Int) {
        bar = CarryJudge.bar(of: sample)
        barLife = count / 128 + 8
    }

    /// Begins anew with what may be carried.
    mutating func setCapacity(_ capacity: Int, segmentSize: Int) {
        judge = CarryJudge(capacity: capacity, segmentSize: segmentSize)
    }

    /// Notes a request for a key that is not held; gives the mark for its entry.
    mutating func noteMiss(_ hash: UInt32, size: Int, capacity: Int, expected: Int) -> UInt8 {
        let mark = frequencies.noteMiss(hash)
        tryOut(hash, size: size, mark: mark, capacity: capacity, expected: expected)
        return mark
    }

    /// Notes a request for an entry that is held; gives its new mark.
    mutating func noteUse(_ entry: SegmentedEntry, capacity: Int, expected: Int) -> UInt8 {
        let mark = frequencies.noteUse(entry.mark)
        tryOut(entry.hash, size: Int(entry.size), mark: mark, capacity: capacity, expected: expected)
        return mark
    }

    private mutating func tryOut(_ hash: UInt32, size: Int, mark: UInt8, capacity: Int, expected: Int) {
        barLife -= 1
        guard trials.samples(hash) else { return }
        let (weight, now) = (frequencies.weight(mark), frequencies.now)
        trials.note(hash, size: size, weight: weight, now: now, capacity: capacity, expected: expected)
    }
}
