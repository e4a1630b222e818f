// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Dispatch
import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSessionTransport: cancellation, dropping, deadlines", .timeLimit(.minutes(20)))
struct URLSessionCancellationTests {
    @Test("If cancelled before it begins, nothing is sent")
    func cancelledBefore() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await URLSessionTransport().send(server.url())
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(server.requests.isEmpty)
    }

    @Test("Cancelled while the head is awaited: CancellationError, and the connection ends")
    func cancelledBeforeHead() async throws {
        let server = try LoopbackServer.start { _ in .never }
        let transport = URLSessionTransport()
        let task = Task { try await transport.send(server.url()) }
        try await server.requests(atLeast: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
    }

    @Test("Calls that are cancelled at any moment during redirects end themselves and nothing else")
    func cancelledAmidRedirects() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(307, fields: [("Location", "/\(request.number)")], body: "xx")
        }
        let pipeline = Pipeline(transport: URLSessionTransport())
        var generator = SeededGenerator(seed: 705)
        for _ in 0..<300 {
            let call = Task { _ = try? await pipeline.send(URLRequest(url: server.url())) }
            // Until the server has been asked, and a little longer.
            let asked = server.requests.count + Int.random(in: 1...8, using: &generator)
            while server.requests.count < asked { await Task.yield() }
            for _ in 0..<Int.random(in: 0..<400, using: &generator) { await Task.yield() }
            call.cancel()
            await call.value
        }
        #expect(server.requests.count >= 300)
    }

    @Test("Cancelled in the middle of the body: CancellationError, and the connection ends")
    func cancelledInBody() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("a"), .pause(gate)])
        }
        let transport = URLSessionTransport()
        let firstRead = CountWatch()
        let task = Task {
            let response = try await transport.send(server.url())
            var chunks = response.body.makeAsyncIterator()
            let first = try await chunks.next()
            #expect(first?.count == 1)
            firstRead.increment()
            _ = try await chunks.next()
        }
        try await firstRead.wait(for: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
    }

    @Test("Cancelled while its request body is collected")
    func cancelledInRequestBody() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let reading = CountWatch()
        let task = Task {
            try await URLSessionTransport().send(
                server.url(),
                method: "PUT",
                body: .factory {
                    reading.increment()
                    try await CountWatch().wait(for: 1)
                    return ChunkSource([])
                }
            )
        }
        try await reading.wait(for: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(server.requests.isEmpty)
    }

    @Test("An unread body that is dropped ends its transfer", arguments: [true, false])
    func dropped(byDiscarding: Bool) async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("a"), .pause(gate)])
        }
        let transport = URLSessionTransport()
        var response: Response? = try await transport.send(server.url())
        if byDiscarding {
            response?.body.discard()
            await #expect(throws: CancellationError.self) { try await response?.body.collect() }
        }
        response = nil
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
    }

    @Test("A body discarded after it arrived completely is released; one read to its end stays ended")
    func discardedLate() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "x") }
        let transport = URLSessionTransport()
        let unread = try await transport.send(server.url())
        unread.body.discard()
        await #expect(throws: CancellationError.self) { try await unread.body.collect() }
        let read = try await transport.send(server.url())
        #expect(try await read.text() == "x")
        read.body.discard()
        #expect(try await read.body.source?.next() == nil)
    }

    @Test("The deadline uses the call's clock and ends an exchange without a head")
    func deadline() async throws {
        let server = try LoopbackServer.start { _ in .never }
        let transport = URLSessionTransport()
        #expect(transport.enforcesDeadline)
        let clock = ManualClock()
        let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(5)))
        let task = Task { try await transport.send(server.url(), context: context) }
        try await server.requests(atLeast: 1)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(5))
        let error = await #expect(throws: ServiceError.self) { try await task.value }
        #expect(error?.code == .timeout)
        #expect(error?.progress == .bodySent)
        #expect(try await server.connectionEnds(atLeast: 1).map(\.endedBy) == [.peer])
    }

    #if !canImport(Darwin)
        @Test("A deadline and a cancellation are kept while Foundation is busy, and nothing is sent later")
        func foundationIsBusy() async throws {
            let server = try LoopbackServer.start { _ in LoopbackReply() }
            let busy = DispatchSemaphore(value: 0)
            FoundationQueue.perform { busy.wait() }
            let transport = URLSessionTransport()
            let clock = ManualClock()
            let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(5)))
            let late = Task { try await transport.send(server.url(), context: context) }
            try await clock.waitForSleeps(1)
            clock.advance(by: .seconds(5))
            let error = await #expect(throws: ServiceError.self) { try await late.value }
            #expect(error?.code == .timeout)
            #expect(error?.progress == .notSent)
            let cancelled = Task { try await transport.send(server.url()) }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            busy.signal()
            _ = try await transport.send(server.url())
            #expect(server.requests.count == 1)
        }
    #endif

    @Test("A deadline that has passed already sends nothing")
    func deadlinePassed() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let clock = ManualClock()
        let error = await #expect(throws: ServiceError.self) {
            try await URLSessionTransport().send(server.url(), context: CallContext(clock: clock, deadline: clock.now))
        }
        #expect(error?.code == .timeout)
        #expect(error?.progress == .notSent)
        #expect(server.requests.isEmpty)
    }

    @Test("The deadline applies while a request body is collected")
    func deadlineInRequestBody() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let clock = ManualClock()
        let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
        let task = Task {
            try await URLSessionTransport().send(
                server.url(),
                method: "PUT",
                body: .factory {
                    try await CountWatch().wait(for: 1)
                    return ChunkSource([])
                },
                context: context
            )
        }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(1))
        let error = await #expect(throws: ServiceError.self) { try await task.value }
        #expect(error?.code == .timeout)
        #expect(error?.progress == .notSent)
    }

    @Test("After the head the deadline no longer applies, and its timer is gone")
    func deadlineAfterHead() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.pause(gate), .send("late")])
        }
        let clock = ManualClock()
        let context = CallContext(clock: clock, deadline: clock.now.advanced(by: .seconds(1)))
        let response = try await URLSessionTransport().send(server.url(), context: context)
        clock.advance(by: .seconds(100))
        gate.open()
        #expect(try await response.text() == "late")
    }

    @Test(
        "The request's timeout ends a silent server, and a protocol class that never answers",
        arguments: [true, false]
    )
    func requestTimeout(byProtocolClass: Bool) async throws {
        let server = try LoopbackServer.start { _ in .never }
        let configuration = URLSessionConfiguration.ephemeral
        if byProtocolClass { configuration.protocolClasses = [SilentURLProtocol.self] }
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 0.2
        let ready = request
        let error = await #expect(throws: ServiceError.self) {
            try await URLSessionTransport(configuration: configuration)
                .send(ready, body: .none, context: CallContext())
        }
        #expect(error?.code == .timeout)
        #expect(error?.progress == .bodySent)
    }
}

/// Takes every request and says nothing, ever.
private final class SilentURLProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func startLoading() {}
    override func stopLoading() {}
}
