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
    @Test("Of two tasks that read one body at the same time the second gets an error, and the first gets the bytes")
    func twoReaders() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let exchange = URLSessionExchange(
            try await RequestUpload.prepare(URLRequest(url: url), body: .none, memoryLimit: 0),
            limits: URLSessionTransport.Limits(),
            idleLimit: nil,
            now: { SystemClock().now },
            onInterim: { _ in }
        )
        let body = URLSessionBodySource(exchange)
        await withTaskGroup(of: ByteChunk?.self) { group in
            for _ in 0..<2 { group.addTask { (try? await body.next()) ?? nil } }
            let refused = await group.next()
            #expect(refused == .some(nil))
            exchange.received(Data([1]))
            let delivered = await group.next()
            #expect(delivered == ByteChunk([1]))
        }
    }

    @Test(
        "A head that comes with the end has no content; an interim one is none, and one that came before may have",
        arguments: [(302, true, 302), (103, true, nil), (200, false, 200)] as [(Int, Bool, Int?)]
    )
    func lateHead(_ status: Int, isLate: Bool, _ expected: Int?) async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let exchange = URLSessionExchange(
            try await RequestUpload.prepare(URLRequest(url: url), body: .none, memoryLimit: 0),
            limits: URLSessionTransport.Limits(),
            idleLimit: nil,
            now: { SystemClock().now },
            onInterim: { _ in }
        )
        let fields = ["Content-Length": "100"]
        let head = try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields))
        // Started before anything is received: the task itself is never resumed.
        let waiting = Task { try await exchange.head { URLSession.shared.dataTask(with: url) } }
        if !isLate { exchange.received(head) }
        exchange.receivedEnd(nil, lateHead: isLate ? head : nil)
        if let expected {
            #expect(exchange.hasEndedEmpty == (isLate && expected == 302))
        } else {
            let error = await #expect(throws: ServiceError.self) { try await waiting.value }
            #expect(error?.code == .protocolError)
        }
        waiting.cancel()
    }

    @Test("An exchange whose spill file could not be read ends its transfer")
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
        var actions: [ExchangeState.Action] = []
        do {
            _ = try await withCheckedThrowingContinuation { (reader: ExchangeState.ReaderContinuation) in
                actions = state.readBack(1, outcome: .failure(CocoaError(.fileReadUnknown)), for: reader)
                for case .resumeReader(let waiter, let outcome) in actions { waiter.resume(with: outcome) }
            }
            Issue.record("a failed reading gave bytes")
        } catch {
            #expect(error is ServiceError)
        }
        #expect(actions.contains { if case .cancel(let ended) = $0 { ended === task } else { false } })
        let again = state.fail(CancellationError(), keepsBuffer: false, overrides: true)
        #expect(!again.contains { if case .cancel = $0 { true } else { false } })
    }
}
