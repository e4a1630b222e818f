// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How much a stream may hold and how long it may take to open; everything has a default.
public struct StreamLimits: Sendable, Hashable {
    /// The most bytes of a message, in either direction; 1 MiB by default. If a longer one arrives, the stream ends.
    public var messageSize = 1 << 20
    /// The most messages that wait for their reader; 16 by default, at least 1. Beyond that, no more are taken from the peer
    /// until one has been read.
    public var unreadMessages = 16
    /// The most messages that wait to be sent, while the stream opens or while another one is being sent; 64 by default, at least
    /// 1. A further ``MessageStream/send(_:)`` fails.
    public var unsentMessages = 64
    /// The time the stream may take to open; nil, the default: the `attemptTimeout` of the client's pipeline.
    public var openTimeout: Duration?

    /// The defaults.
    public init() {}
}
