// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The amount of work to measure.
struct Plan: Sendable {
    /// A body size, and how much is measured with it.
    struct Size: Sendable {
        let name: String
        let bytes: Int
        /// The entries that gets choose from.
        let population: Int
        /// Operations per turn, unless the time limit of the turn ends it earlier.
        let gets: Int
        let puts: Int
        /// For a subject whose operations take milliseconds: the number of entries that it holds, and the most that it writes
        /// in a turn.
        let slow: Int
    }

    let sizes: [Size]
    /// Turns of each subject in a case; the median is reported.
    let rounds: Int
    /// No further case begins after this many seconds of the whole run.
    let totalSeconds: Double
    /// After this many seconds a case ends with the rounds that it has, but at least three.
    let caseSeconds: Double
    /// A slow subject's turn ends early after this many nanoseconds.
    let turn: UInt64
    /// The store's capacity in the put cases; the store is full before the first turn.
    let putCapacity: Int
    /// The time limit in seconds for filling a store before a put case.
    let warmUpSeconds: Double
    /// The number of entries in the open cases, and the time limit in seconds for writing them.
    let openEntries: Int
    let fillSeconds: Double
    let cachedOpens: Int
    let evictedOpens: Int
    /// The duration of the reclaim case in seconds, the capacity of its store, and its writes per second.
    let reclaimSeconds: Int
    let reclaimCapacity: Int
    let writesPerSecond: Int

    /// Creates the full plan, or the plan of `--quick`, with the values from the options.
    init(isQuick: Bool, numbers: [String: Int]) {
        rounds = max(1, numbers["rounds"] ?? (isQuick ? 5 : 7))
        sizes =
            isQuick
            ? [
                Size(name: "1KiB", bytes: 1 << 10, population: 10_000, gets: 6_000, puts: 3_000, slow: 20),
                Size(name: "16KiB", bytes: 16 << 10, population: 2_000, gets: 3_000, puts: 600, slow: 20),
                Size(name: "1MiB", bytes: 1 << 20, population: 32, gets: 60, puts: 12, slow: 3),
            ]
            : [
                Size(name: "1KiB", bytes: 1 << 10, population: 20_000, gets: 50_000, puts: 20_000, slow: 100),
                Size(name: "16KiB", bytes: 16 << 10, population: 10_000, gets: 20_000, puts: 2_000, slow: 100),
                Size(name: "1MiB", bytes: 1 << 20, population: 128, gets: 500, puts: 32, slow: 10),
            ]
        totalSeconds = isQuick ? 28 : .infinity
        caseSeconds = isQuick ? 1.5 : 120
        turn = isQuick ? 40_000_000 : 600_000_000
        putCapacity = isQuick ? 64 << 20 : 256 << 20
        warmUpSeconds = isQuick ? 0.7 : 20
        openEntries = max(1, numbers["entries"] ?? 1_000_000)
        fillSeconds = Double(numbers["fill-seconds"] ?? (isQuick ? 12 : 120))
        cachedOpens = isQuick ? 3 : 7
        evictedOpens = isQuick ? 1 : 5
        reclaimSeconds = max(1, numbers["seconds"] ?? (isQuick ? 3 : 60))
        reclaimCapacity = (isQuick ? 64 : 256) << 20
        writesPerSecond = numbers["writes-per-second"] ?? 4_000
    }

    /// The options besides the common ones.
    static let numberOptions: Set<String> = ["rounds", "entries", "fill-seconds", "seconds", "writes-per-second"]

    /// The names of the open cases contain the number of entries: `open-1M`, `open-250k`.
    static func countName(_ entries: Int) -> String {
        if entries >= 1_000_000, entries % 1_000_000 == 0 { return "\(entries / 1_000_000)M" }
        return entries >= 1_000 ? "\(entries / 1_000)k" : "\(entries)"
    }
}
