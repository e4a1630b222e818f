// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Where the calls of a load go: the built-in origin, or servers on the network.
protocol Target: Sendable {
    /// The longest time for one attempt; nil: no limit.
    var attemptTimeout: Duration? { get }

    /// Whether the first call of each resource asks for revalidation when a store is opened anew.
    var revalidatesAfterRestart: Bool { get }

    /// The request of a call.
    func request(for call: Call) -> URLRequest

    /// A way there of its own for one run, counted from zero.
    func connect() -> Connection
}

/// The way to a target, and what went along it.
struct Connection: Sendable {
    /// What sends.
    let transport: any Transport
    /// What was sent so far, as counted at the far end, or as near to it as can be.
    let traffic: @Sendable () -> Traffic
}

/// What reached an origin and what came back.
struct Traffic: Sendable, Hashable {
    /// Requests, those included that were failed.
    var sends = 0
    /// Body bytes sent back.
    var bodyBytes = 0
    /// Answers of status 304.
    var notModified = 0
}
