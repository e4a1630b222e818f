// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension WebService {
    /// The client for endpoint calls that are not given one: that of the innermost ``withShared(_:isolation:_:)``, or else
    /// ``shared``.
    public static var current: ServiceClient<Self> {
        SharedClients.overrides[ObjectIdentifier(Self.self)] as? ServiceClient<Self> ?? shared
    }

    /// Runs `operation` with another client in place of ``shared``, only for this service and only for the tasks of
    /// `operation`; tests that run in parallel do not affect each other.
    public static func withShared<Value>(
        _ client: ServiceClient<Self>,
        isolation: isolated (any Actor)? = #isolation,
        _ operation: () async throws -> Value
    ) async rethrows -> Value {
        var overrides = SharedClients.overrides
        overrides[ObjectIdentifier(Self.self)] = client
        return try await SharedClients.$overrides.withValue(overrides, operation: operation, isolation: isolation)
    }
}

/// The clients that replace shared ones, by the type of their service.
private enum SharedClients {
    @TaskLocal static var overrides: [ObjectIdentifier: any Sendable] = [:]
}
