// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast

    /// Which circuits are open, as far as events have told; in bounded number.
    struct CircuitNotes: Sendable {
        static let limit = 64

        /// Until when each origin is refused; past it probes go through.
        private(set) var open: [String: MonotonicInstant] = [:]

        mutating func opened(_ origin: String, until: MonotonicInstant) {
            if open[origin] == nil, open.count >= CircuitNotes.limit,
                let oldest = open.min(by: { $0.value < $1.value })?.key
            {
                open[oldest] = nil
            }
            open[origin] = until
        }

        mutating func closed(_ origin: String) {
            open[origin] = nil
        }
    }
#endif
