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
            OverheadCase("one-hook", .never, hooks: 1, deadline: false),
            OverheadCase("five-hooks", .never, hooks: 5, deadline: false),
            OverheadCase("retrier", .backoff(), deadline: false),
            OverheadCase("retrier-deadline", .backoff(), deadline: true),
        ]
    }

    private init(_ name: String, _ factory: any RetrierFactory, hooks: Int = 0, deadline: Bool) {
        self.name = name
        pipeline = Pipeline(
            transport: ImmediateTransport(),
            retrierFactory: factory,
            hooks: (0..<hooks).map { _ in PassingHook() }
        )
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

/// Looks at each call and at each response, and changes nothing.
private struct PassingHook: ServiceHook {
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? { nil }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {}
}
