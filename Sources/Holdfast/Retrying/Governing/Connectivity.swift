// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Says whether the machine is online: the port to whatever watches the network.
///
/// **Choose.** `ManualConnectivity` of HoldfastTesting in tests; in programs, one that wraps the platform's monitor, such as
/// `NWPathMonitor` on Apple systems. **Use.** Through ``RetryGovernor/init(_:connectivity:generator:)`` together with
/// `RetryRules.waitsForConnectivity`. **Implement.** Both members are called from many tasks at once;
/// ``waitUntilOnline()`` returns at once while online and throws `CancellationError` promptly when its task is cancelled.
public protocol Connectivity: Sendable {
    /// Whether the machine is online, as far as is known.
    var isOnline: Bool { get }

    /// Waits until the machine is online.
    func waitUntilOnline() async throws
}
