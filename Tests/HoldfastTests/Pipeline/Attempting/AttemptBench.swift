// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A pipeline of a retrier and a clock that moves by itself.
struct AttemptBench {
    let clock = ManualClock(autoAdvances: true)

    func pipeline(
        _ transport: any Transport,
        _ retrier: any Retrier = AlwaysRetrier(delay: .seconds(1)),
        hooks: [any ServiceHook] = [],
        _ change: (inout PipelineConfiguration) -> Void = { _ in }
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        change(&configuration)
        return Pipeline(
            transport: transport,
            retrierFactory: AnyRetrierFactory { _ in retrier },
            hooks: hooks,
            configuration: configuration
        )
    }
}

/// A source of one chunk.
final class OneChunk: ByteSource {
    private let rest: Mutex<ByteChunk?>

    init(_ text: String) {
        rest = Mutex(ByteChunk(copying: text.utf8))
    }

    func next() async throws -> ByteChunk? {
        rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
    }

    func cancel() {}
}

/// Heeds neither deadline nor cancellation: answers when its gate opens, whatever happens meanwhile.
struct DeafTransport: Transport {
    let entered = CountWatch()
    let gate = CountWatch()
    let left = CountWatch()

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        entered.increment()
        let gate = gate
        try await Task.detached { try await gate.wait(for: 1) }.value
        left.increment()
        return Response(status: .ok)
    }
}

/// Cannot connect at first; may have begun to read the body by then.
struct RefusingOnce: Transport {
    let inner: ScriptedTransport
    let readsFirst: Bool
    let attempts = CountWatch()

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        attempts.increment()
        guard attempts.count == 1 else { return try await inner.send(request, body: body, context: context) }
        if readsFirst, case .oneShot(_, let source) = body.form { _ = try await source.next() }
        throw ServiceError(.connect, "refused", progress: .notSent)
    }
}
