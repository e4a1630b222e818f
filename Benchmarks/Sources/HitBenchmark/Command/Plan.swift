// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How much is measured.
struct Plan: Sendable, Equatable {
    /// Turns of each subject in a case; the median counts.
    let rounds: Int
    /// Nanoseconds of a turn.
    let turn: UInt64
    /// Resources that are asked for, each as often as the others.
    let entries: Int
    /// How many of them a cache holds whose hits take milliseconds.
    let slowEntries: Int
    /// Seconds of the whole run after which a case makes do with the rounds it has, three at least.
    let totalSeconds: Double
    /// Seconds of the whole run by which a count of instructions in another process must be done.
    let countSeconds: Double
    /// Seconds that installing Python's caches may take.
    let installSeconds: Double

    /// The options beyond those of every benchmark.
    static let numberOptions: Set<String> = ["rounds", "entries", "turn-milliseconds", "install-seconds"]

    /// The whole plan, or that of `--quick`, with what the options say otherwise.
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
