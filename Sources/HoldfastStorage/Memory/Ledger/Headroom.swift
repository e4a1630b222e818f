// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How many bytes a store keeps clear of its eviction policy, so that entries being written drive nothing out before the
/// policy was asked about them.
///
/// The most that was being written at once lately, and an eighth of the capacity at most: what is written beyond that
/// evicts early.
struct Headroom: Sendable {
    /// The entries begun after which a peak is forgotten, at the latest twice as many.
    static let window = 256

    private let limit: Int
    private var current = 0
    private var previous = 0
    private var begun = 0

    /// No headroom yet, of a store with this capacity.
    init(capacity: Int) {
        limit = max(0, capacity) / 8
    }

    /// The bytes to keep clear.
    var bytes: Int { max(current, previous) }

    /// Notes how many bytes are being written at once.
    mutating func note(inFlight bytes: Int) {
        current = max(current, min(bytes, limit))
    }

    /// Notes that one more entry is being written; `bytes` are in flight without it.
    mutating func noteBegin(inFlight bytes: Int) {
        begun += 1
        guard begun >= Self.window else { return }
        begun = 0
        previous = current
        current = 0
        note(inFlight: bytes)
    }
}
