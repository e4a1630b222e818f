// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many of the last 64 events had a property: a shift register, so that the past is forgotten by number and not by time.
struct RecentShare: Sendable {
    private var bits: UInt64 = 0

    /// How many events are remembered; 64 at most.
    private(set) var count = 0

    /// The most events that are remembered.
    static let capacity = 64

    /// How many of them had the property.
    var hits: Int { bits.nonzeroBitCount }

    mutating func record(_ hit: Bool) {
        bits = bits << 1 | (hit ? 1 : 0)
        count = min(count + 1, RecentShare.capacity)
    }
}

extension Double {
    /// A share from 0 to 1 in whole millionths, so that counts are compared with it exactly; what lies outside counts as the
    /// nearest, and no number as 0.
    var millionths: Int {
        self > 0 ? Int(Swift.min(self, 1) * 1_000_000 + 0.5) : 0
    }
}
