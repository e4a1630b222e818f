// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// An exchange's one wait for the other processes of its fleet.
final class FillWait: Sendable {
    let leasing: any FillLeasing
    /// Whether the exchange may be left to another process.
    let mayYield: Bool
    private let begun = Atomic(false)

    init(_ leasing: any FillLeasing, mayYield: Bool) {
        self.leasing = leasing
        self.mayYield = mayYield
    }

    /// Whether another process was waited for.
    var hasWaited: Bool { begun.load(ordering: .acquiring) }

    func begin() {
        begun.store(true, ordering: .releasing)
    }
}
