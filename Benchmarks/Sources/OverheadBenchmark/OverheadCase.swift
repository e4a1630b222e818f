// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A pipeline whose own cost is measured, over a transport that answers at once.
struct OverheadCase: Sendable {
    let name: String
    let pipeline: Pipeline
    let options: CallOptions

    static var all: [OverheadCase] {
        [
            OverheadCase("empty", .never, deadline: false),
            OverheadCase("empty-deadline", .never, deadline: true),
            OverheadCase("retrier", .backoff(), deadline: false),
            OverheadCase("retrier-deadline", .backoff(), deadline: true),
        ]
    }

    private init(_ name: String, _ factory: any RetrierFactory, deadline: Bool) {
        self.name = name
        pipeline = Pipeline(transport: ImmediateTransport(), retrierFactory: factory)
        var options = CallOptions()
        if deadline { options.timeout = .seconds(30) }
        self.options = options
    }

    /// Makes `calls` calls, one after the other.
    ///
    /// - Returns: how many were answered as they should be.
    func make(_ calls: Int) async throws -> Int {
        guard let url = URL(string: "https://api.example/v1/items/42?page=2") else { return 0 }
        let request = URLRequest(url: url)
        var right = 0
        for _ in 0..<calls where try await pipeline.send(request, options: options).status == .ok { right += 1 }
        return right
    }
}

/// Answers at once, and keeps to deadlines by never being late.
private struct ImmediateTransport: Transport {
    private let response = Response(status: .ok)

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        response
    }
}
