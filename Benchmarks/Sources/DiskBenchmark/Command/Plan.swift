// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How much is measured.
struct Plan: Sendable {
    /// A size of body with what is measured at it.
    struct Size: Sendable {
        let name: String
        let bytes: Int
        /// Entries that gets choose from.
        let population: Int
        /// Operations in a turn, unless the time for a turn is over before.
        let gets: Int
        let puts: Int
        /// Entries a subject holds, and the most it writes in a turn, when each of its operations takes milliseconds.
        let slow: Int
    }

    let sizes: [Size]
    /// Turns of each subject in a case; the median counts.
    let rounds: Int
    /// Seconds of the whole run after which no further case begins.
    let totalSeconds: Double
    /// Seconds after which a case makes do with the rounds it has, three at least.
    let caseSeconds: Double
    /// Nanoseconds after which a slow subject's turn ends early.
    let turn: UInt64
    /// Capacity of the store in the put cases: it is full before the first turn.
    let putCapacity: Int
    /// Seconds that filling a store up before a put case may take.
    let warmUpSeconds: Double
    /// Entries of the open cases, and the seconds that writing them may take.
    let openEntries: Int
    let fillSeconds: Double
    let cachedOpens: Int
    let evictedOpens: Int
    /// Seconds of the reclaim case, its store's capacity, and the writes a second.
    let reclaimSeconds: Int
    let reclaimCapacity: Int
    let writesPerSecond: Int

    /// The whole plan, or that of `--quick`, with what the options say otherwise.
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

    /// The options beyond those of every benchmark.
    static let numberOptions: Set<String> = ["rounds", "entries", "fill-seconds", "seconds", "writes-per-second"]

    /// The names of the open cases say how many entries there were: `open-1M`, `open-250k`.
    static func countName(_ entries: Int) -> String {
        if entries >= 1_000_000, entries % 1_000_000 == 0 { return "\(entries / 1_000_000)M" }
        return entries >= 1_000 ? "\(entries / 1_000)k" : "\(entries)"
    }
}
