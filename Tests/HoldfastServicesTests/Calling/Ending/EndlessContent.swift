// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastStorage
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Content whose first byte comes and whose second never does.
final class EndlessContent: ByteSource {
    private let reached: CountWatch
    private let never = CountWatch()
    private let ended = CountWatch()

    /// - Parameter reached: is counted up when somebody waits for what never comes.
    init(reached: CountWatch) {
        self.reached = reached
    }

    /// A response with this content.
    var response: Response { Response(status: .ok, body: ResponseBody(self)) }

    func next() async throws -> ByteChunk? {
        reached.increment()
        if reached.count == 1 { return ByteChunk(copying: "o".utf8) }
        try await never.wait(for: 1)
        return nil
    }

    func cancel() { ended.increment() }

    /// Waits until the content was given up.
    func waitForCancel() async throws { try await ended.wait(for: 1) }
}

/// A transport that answers each request by a closure.
struct AnsweringTransport: Transport {
    let answer: @Sendable () -> Response

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response { answer() }

    var enforcesDeadline: Bool { true }
}
