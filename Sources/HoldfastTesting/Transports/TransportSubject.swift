// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast

/// A transport that ``TransportConformance`` is tried on.
public struct TransportSubject: Sendable, CustomStringConvertible {
    /// What the transport is called.
    public let description: String
    /// What it declares to do.
    public let capabilities: TransportCapabilities
    /// Makes a transport; checks run beside each other in tests, each with one of its own.
    public let make: @Sendable () async throws -> any Transport
    /// Ends a transport that a check is done with.
    public let close: @Sendable (any Transport) async -> Void

    /// A subject.
    ///
    /// - Parameters:
    ///   - description: what the transport is called.
    ///   - capabilities: what it declares to do.
    ///   - make: makes a transport; one that is shared is fine too.
    ///   - close: ends a transport; by default dropping it does.
    public init(
        _ description: String,
        capabilities: TransportCapabilities,
        make: @escaping @Sendable () async throws -> any Transport,
        close: @escaping @Sendable (any Transport) async -> Void = { _ in }
    ) {
        self.description = description
        self.capabilities = capabilities
        self.make = make
        self.close = close
    }
}
