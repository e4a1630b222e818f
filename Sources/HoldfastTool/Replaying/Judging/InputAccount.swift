// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastSemantics

    /// What was read, and what became of it.
    ///
    /// Each request is one of: not looked up, looked up with an answer that is not kept, or replayed.
    struct InputAccount: Sendable {
        /// How many broken lines or entries are shown.
        static let shownComplaints = 3

        var requests = 0
        var methods = Tally()
        /// When the requests were made; nil where the input does not tell.
        private(set) var span: ClosedRange<Timestamp>?

        /// Lines or entries that could not be read, and the first of them.
        private(set) var malformed = 0
        private(set) var complaints: [String] = []

        /// Requests that no cache looks up, by reason.
        var bypassed = Tally()
        /// Requests that were looked up and whose answer no cache keeps, by reason, and their bytes.
        var unstored = Tally()
        var unstoredBytes = 0
        /// What a cache without a bound does with the requests looked up, by reason; empty where the input has no fields to tell.
        var unbounded = Tally()

        /// Requests that a cache looks up: those that hit ratios are of.
        var lookups: Int { requests - bypassed.total }

        mutating func complain(_ file: String, _ place: String, _ text: String) {
            malformed += 1
            if complaints.count < Self.shownComplaints { complaints.append("\(file), \(place): \(text)") }
        }

        mutating func note(_ instant: Timestamp) {
            guard let known = span else {
                span = instant...instant
                return
            }
            if !known.contains(instant) { span = min(known.lowerBound, instant)...max(known.upperBound, instant) }
        }

        mutating func addUnstored(_ word: String, bytes: Int) {
            unstored.add(word)
            let (sum, overflow) = unstoredBytes.addingReportingOverflow(max(0, bytes))
            unstoredBytes = overflow ? .max : sum
        }

        mutating func addUnstored(times count: Int, _ word: String) {
            unstored.add(word, count)
        }
    }
#endif
