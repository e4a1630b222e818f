// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Contests
internal import Exchanges
internal import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A pipeline whose own cost is measured, with a transport that responds immediately.
struct OverheadCase: Sendable {
    let name: String
    private let pipeline: Pipeline
    private let options: CallOptions

    static var all: [OverheadCase] {
        [
            OverheadCase("empty"),
            OverheadCase("one-hook", hooks: [PassingHook()]),
            OverheadCase("one-synchronous-hook", hooks: [PassingSynchronousHook()]),
            OverheadCase("five-hooks", hooks: (0..<5).map { _ in PassingHook() }),
            OverheadCase("retrier", .backoff()),
            OverheadCase("empty-deadline", deadline: true),
            OverheadCase("retrier-deadline", .backoff(), deadline: true),
        ]
    }

    static let subjects = ["holdfast", "direct"]

    private init(
        _ name: String,
        _ factory: any RetrierFactory = .never,
        hooks: [any ServiceHook] = [],
        deadline: Bool = false
    ) {
        self.name = name
        pipeline = Pipeline(
            transport: ImmediateTransport(),
            retrierFactory: factory,
            hooks: hooks
        )
        var options = CallOptions()
        if deadline { options.timeout = .seconds(30) }
        self.options = options
    }

    /// The pipeline, and the same call without a pipeline.
    func contests() -> [Contest] {
        guard let request = Resource(42, length: 0).request else { return [] }
        let direct: any Answering = DirectAnswer()
        return [
            Contest(name, "holdfast") { [pipeline, options] _, calls in
                var right = 0
                for _ in calls where try await pipeline.send(request, options: options).status == .ok { right += 1 }
                return right
            },
            Contest(name, "direct") { _, calls in
                var right = 0
                for _ in calls where try await direct.answer(request).status == .ok { right += 1 }
                return right
            },
        ]
    }
}

/// Responds immediately, so it never exceeds a deadline.
private struct ImmediateTransport: Transport {
    private let response = Response(status: .ok)

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        response
    }
}

/// Sees each call and each response, and changes nothing.
private struct PassingHook: ServiceHook {
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? { nil }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {}
}

/// The same, without suspending.
private struct PassingSynchronousHook: SynchronousServiceHook {
    func scheduled(_ request: inout URLRequest, context: inout CallContext) throws -> Response? { nil }
    func succeeded(_ response: inout Response, to request: URLRequest, context: inout CallContext) throws {}
}

/// What an app calls if it has only a transport.
private protocol Answering: Sendable {
    func answer(_ request: URLRequest) async throws -> Response
}

private struct DirectAnswer: Answering {
    private let response = Response(status: .ok)

    func answer(_ request: URLRequest) async throws -> Response { response }
}
