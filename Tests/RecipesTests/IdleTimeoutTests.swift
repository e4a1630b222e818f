// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("What docs/clients/urlsession.md says about idle timeouts", .timeLimit(.minutes(20)))
struct IdleTimeoutTests {
    private func ended(_ reply: LoopbackReply) async throws -> ServiceError? {
        let server = try LoopbackServer.start { _ in reply }
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 1
        let client = Pipeline(transport: URLSessionTransport())
        do {
            _ = try await client.data(for: request)
            return nil
        } catch {
            return error as? ServiceError
        }
    }

    @Test(
        "A server that is silent before its head, or during its content, for longer than timeoutInterval ends the call"
    )
    func silence() async throws {
        let middle = LoopbackReply(framing: .length(10), steps: [.send("hello"), .never])
        for reply in [LoopbackReply(before: [.never]), middle] {
            let error = try await ended(reply)
            #expect(error?.code == .timeout)
            #expect(
                error?.message.hasPrefix("The server sent nothing for 1.0 seconds (`URLRequest.timeoutInterval`).")
                    == true,
                "\(error?.message ?? "")"
            )
        }
    }
}
