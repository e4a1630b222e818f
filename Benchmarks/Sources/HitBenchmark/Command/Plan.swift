// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The amount of work to measure.
struct Plan: Sendable, Equatable {
    /// Turns of each subject in a case; the median is reported.
    let rounds: Int
    /// Nanoseconds per turn.
    let turn: UInt64
    /// The number of requested resources, each equally often.
    let entries: Int
    /// The number of resources in a cache whose hits take milliseconds.
    let slowEntries: Int
    /// After this many seconds of the whole run a case ends with the rounds that it has, but at least three.
    let totalSeconds: Double
    /// The second of the whole run by which counting instructions in another process must be done.
    let countSeconds: Double
    /// The time limit in seconds for installing Python's caches.
    let installSeconds: Double

    /// The options besides the common ones.
    static let numberOptions: Set<String> = ["rounds", "entries", "turn-milliseconds", "install-seconds"]

    /// Creates the full plan, or the plan of `--quick`, with the values from the options.
    init(isQuick: Bool, numbers: [String: Int]) {
        rounds = max(1, numbers["rounds"] ?? (isQuick ? 5 : 15))
        turn = UInt64(max(1, numbers["turn-milliseconds"] ?? (isQuick ? 15 : 100))) * 1_000_000
        entries = max(1, min(100_000, numbers["entries"] ?? 16))
        slowEntries = min(entries, 16)
        totalSeconds = isQuick ? 26 : .infinity
        countSeconds = isQuick ? 43 : 600
        installSeconds = Double(numbers["install-seconds"] ?? 180)
    }
}
