// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How much is measured.
struct Plan: Sendable, Equatable {
    /// Turns of each subject in a case; the median counts.
    let rounds: Int
    /// Nanoseconds after which a turn ends early: threads that queue for one lock take long.
    let turn: UInt64
    /// Hits of a thread in a turn at most, by face: a request takes longer to make than a key.
    let hits: Int
    let sends: Int
    /// Entries of the cases of several threads.
    let threadEntries: Int
    /// Seconds of the whole run; entries that could not be filled in by then are left out.
    let totalSeconds: Double
    /// Hits between two looks at the clock.
    let slice = 250
    /// Entries by which it is found out what an entry takes.
    let probeEntries = 20_000

    /// The options beyond those of every benchmark.
    static let numberOptions: Set<String> = ["rounds", "entries", "hits"]
    static let wordOptions: Set<String> = ["plot"]

    /// The whole plan, or that of `--quick`, with what the options say otherwise.
    init(isQuick: Bool, numbers: [String: Int]) {
        rounds = max(1, numbers["rounds"] ?? (isQuick ? 5 : 15))
        hits = min(1_000_000, max(1, numbers["hits"] ?? (isQuick ? 20_000 : 50_000)))
        sends = max(1, hits / 10)
        turn = isQuick ? 20_000_000 : 60_000_000
        threadEntries = min(10_000_000, max(1, numbers["entries"] ?? 100_000))
        totalSeconds = isQuick ? 36 : .infinity
    }

    /// Hits of a thread in a turn.
    func hits(_ face: ScaleCase.Face) -> Int { face == .send ? sends : hits }
}
