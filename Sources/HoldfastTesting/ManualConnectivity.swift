// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
private import Synchronization

/// A network that is there or not as a test says.
public final class ManualConnectivity: Connectivity {
    private let online: Atomic<Bool>
    private let returns = CountWatch()
    private let waits = CountWatch()

    /// A network that is there, or not.
    public init(isOnline: Bool = true) {
        online = Atomic(isOnline)
    }

    public var isOnline: Bool { online.load(ordering: .acquiring) }

    /// Takes the network away.
    public func goOffline() {
        online.store(false, ordering: .releasing)
    }

    /// Brings the network back and lets go of all who wait for it.
    public func goOnline() {
        online.store(true, ordering: .releasing)
        returns.increment()
    }

    /// Waits until, in total, `count` tasks have begun to wait for the network.
    public func waitForWaits(_ count: Int) async throws {
        try await waits.wait(for: count)
    }

    public func waitUntilOnline() async throws {
        let seen = returns.count
        guard !isOnline else { return }
        waits.increment()
        try await returns.wait(for: seen + 1)
    }
}
