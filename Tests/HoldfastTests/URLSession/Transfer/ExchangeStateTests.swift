// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The state of an exchange")
struct ExchangeStateTests {
    @Test("An exchange whose spill file could not be read still ends its transfer when its body is abandoned")
    func unreadable() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let task = URLSession.shared.dataTask(with: url)
        let upload = try await RequestUpload.prepare(URLRequest(url: url), body: .none, memoryLimit: 0)
        let buffer = BodyBuffer(memoryLimit: 0, diskLimit: 10)
        var state = ExchangeState(upload: upload, buffer: buffer, start: SystemClock().now)
        let head = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil))
        _ = try await withCheckedThrowingContinuation { continuation in
            let actions = state.wait(continuation)
            #expect(actions.isEmpty)
            let begins = state.begin(task)
            #expect(begins)
            for case .resumeHead(let waiter, let outcome) in state.note(head) { waiter.resume(with: outcome) }
        }
        guard case .failure = state.readBack(1, outcome: .failure(CocoaError(.fileReadUnknown))) else {
            Issue.record("a failed reading gave bytes")
            return
        }
        let actions = state.fail(CancellationError(), keepsBuffer: false, overrides: true)
        #expect(actions.contains { if case .cancel(let ended) = $0 { ended === task } else { false } })
        let again = state.fail(CancellationError(), keepsBuffer: false, overrides: true)
        #expect(!again.contains { if case .cancel = $0 { true } else { false } })
    }
}
