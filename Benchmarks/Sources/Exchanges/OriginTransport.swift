// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Responds to every request for a ``Resource`` immediately, and counts the requests.
public final class OriginTransport: Transport {
    private let length: Int
    private let sends = Atomic<Int>(0)

    /// Creates an origin whose bodies have this many bytes.
    public init(length: Int) {
        self.length = length
    }

    /// The number of requests that arrived here; it does not change while a cache responds.
    public var sendCount: Int { sends.load(ordering: .relaxed) }

    public var enforcesDeadline: Bool { true }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        sends.add(1, ordering: .relaxed)
        guard let resource = Resource(of: request, length: length) else { return Response(status: .notFound) }
        return resource.response(now: context.clock.timestamp)
    }
}
