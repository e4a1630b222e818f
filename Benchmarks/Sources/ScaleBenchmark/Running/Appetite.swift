// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness

/// What filling subjects in takes for an entry, by what was filled in so far.
struct Appetite: Sendable, Equatable {
    /// Bytes of memory and seconds for an entry of all subjects together.
    var bytes: Double
    var seconds: Double

    /// Why so many entries are not filled in: a sentence without its full stop; nil where they fit.
    ///
    /// - Parameters:
    ///   - available: bytes of memory that can be had.
    ///   - left: seconds that the run has left.
    func refusal(entries: Int, available: Int, left: Double) -> String? {
        // A fifth more than was found: tables grow by doubling.
        let wanted = bytes * Double(entries) * 1.2
        if wanted > Double(available) {
            return "all subjects together would take about \(TextTable.bytes(Int(wanted))) of memory, and "
                + "\(TextTable.bytes(available)) can be had; name fewer with --subject"
        }
        // Half as much again: what is larger misses the processor's caches more often.
        let duration = seconds * Double(entries) * 1.5
        if duration > left {
            return "filling in would take about \(Int(duration.rounded())) seconds; leave --quick away"
        }
        return nil
    }
}
