// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// The cost of filling the subjects per entry, estimated from the previous fill.
struct Appetite: Sendable, Equatable {
    /// Bytes of memory and seconds per entry of all subjects together.
    var bytes: Double
    var seconds: Double

    /// Why this many entries are not filled in: a sentence without its period; nil if they fit.
    ///
    /// - Parameters:
    ///   - available: The available memory in bytes.
    ///   - left: The seconds left in the run.
    func refusal(entries: Int, available: Int, left: Double) -> String? {
        // A fifth more than the estimate, because tables grow by doubling.
        let wanted = bytes * Double(entries) * 1.2
        if wanted > Double(available) {
            return "all subjects together would need about \(TextTable.bytes(Int(wanted))) of memory, and "
                + "\(TextTable.bytes(available)) are available; select fewer with --subject"
        }
        // Half as much again, because larger tables miss the processor's caches more often.
        let duration = seconds * Double(entries) * 1.5
        if duration > left {
            return "filling in would take about \(Int(duration.rounded())) seconds; leave out --quick"
        }
        return nil
    }
}
