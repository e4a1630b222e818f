// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The amount of work to measure.
struct Plan: Sendable, Equatable {
    /// Turns of each subject in a case; the median is reported.
    let rounds: Int
    /// A turn ends early after this many nanoseconds, because threads that wait for one lock take long.
    let turn: UInt64
    /// The most hits of a thread per turn, by face; a request takes longer to create than a key.
    let hits: Int
    let sends: Int
    /// Entries in the cases with several threads.
    let threadEntries: Int
    /// The time limit of the whole run in seconds; entries that cannot be filled in by then are left out.
    let totalSeconds: Double
    /// Hits between two checks of the clock.
    let slice = 250
    /// The number of entries for estimating the cost of an entry.
    let probeEntries = 20_000

    /// The options besides the common ones.
    static let numberOptions: Set<String> = ["rounds", "entries", "hits"]
    static let wordOptions: Set<String> = ["plot"]

    /// Creates the full plan, or the plan of `--quick`, with the values from the options.
    init(isQuick: Bool, numbers: [String: Int]) {
        rounds = max(1, numbers["rounds"] ?? (isQuick ? 5 : 15))
        hits = min(1_000_000, max(1, numbers["hits"] ?? (isQuick ? 20_000 : 50_000)))
        sends = max(1, hits / 10)
        turn = isQuick ? 20_000_000 : 60_000_000
        threadEntries = min(10_000_000, max(1, numbers["entries"] ?? 100_000))
        totalSeconds = isQuick ? 36 : .infinity
    }

    /// The hits of a thread per turn.
    func hits(_ face: ScaleCase.Face) -> Int { face == .send ? sends : hits }
}
