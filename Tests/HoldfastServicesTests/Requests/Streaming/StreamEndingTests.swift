// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("How streams end", .timeLimit(.minutes(20)))
struct StreamEndingTests {
    @Test(
        "Closed by this side, the sequence ends quietly after the received messages; sends fail; no failure is reported"
    )
    func closedHere() async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        transport.connection.push(.text("one"), .text("two"))
        try await transport.connection.received.wait(for: 2)
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == "one")
        stream.close(code: StreamCloseCode(rawValue: 4001), reason: "done")
        stream.close()
        let code = StreamCloseCode(rawValue: 4001)
        #expect(transport.connection.closes == [.init(code: code, reason: "done")])
        await #expect(throws: StreamClosedError(code, reason: "done", isByPeer: false)) {
            try await stream.send("late")
        }
        while let result = try await iterator.next() { #expect(try result.get() == "two") }
        #expect(service.log.lines.isEmpty)
    }

    @Test(
        "An invalid close code becomes 1000, and a long reason is cut to fit into a frame (RFC 6455 §5.5, §7.4)"
    )
    func closeCode() async throws {
        let transport = ScriptedStreamTransport()
        let stream = ChatRequest().schedule(with: ServiceClient(StreamService()), over: transport)
        try await stream.waitUntilOpen()
        stream.close(code: .abnormalClosure, reason: String(repeating: "ü", count: 100))
        #expect(
            transport.connection.closes == [
                .init(code: .normalClosure, reason: String(repeating: "ü", count: 61))
            ]
        )
    }

    @Test("A message that is too long and arrived ends the stream, and is reported once, however much is sent later")
    func tooLong() async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        var request = ChatRequest()
        request.limits.messageSize = 3
        let stream = request.schedule(with: ServiceClient(service), over: transport)
        transport.connection.push(.text("long"))
        await #expect(throws: ServiceError.self) { for try await _ in stream {} }
        for _ in 0..<2 {
            let error = await #expect(throws: ServiceError.self) { try await stream.send("x") }
            #expect(error?.code == .bodyTooLarge)
        }
        #expect(service.log.lines == ["second", "first", "process"].map { "\($0) body-too-large" })
    }

    @Test("A hook that sends while it is told of the end gets the error, and nothing hangs")
    func sendingHook() async throws {
        final class AnsweringHook: RequestHook {
            let stream = Mutex<MessageStream<ChatRequest, any Error>?>(nil)
            let log: StreamLog
            init(log: StreamLog) { self.log = log }
            func onFailure(_ error: any Error) async {
                do {
                    try await stream.withLock { $0.take() }?.send("why?")
                } catch {
                    log.note("send", error)
                }
            }
        }
        let transport = ScriptedStreamTransport()
        let log = StreamLog()
        let hook = AnsweringHook(log: log)
        let client = ServiceClient(StreamService(log: log), requestHooks: [hook])
        let stream = ChatRequest().schedule(with: client, over: transport)
        hook.stream.withLock { $0 = stream }
        transport.connection.push(failure: StreamClosedError(.goingAway))
        await #expect(throws: StreamClosedError.self) { for try await _ in stream {} }
        #expect(log.lines == ["send closed 1001", "second closed 1001", "first closed 1001", "process closed 1001"])
    }

    @Test(
        "A stream that is closed while it opens, and opens all the same, is closed at once",
        arguments: [true, false],
        [nil, 3600] as [Int?]
    )
    func closedWhileOpening(byClosing: Bool, timeout: Int?) async throws {
        let transport = ScriptedStreamTransport()
        let gate = CountWatch()
        let stubborn = StubbornTransport(transport, gate)
        let service = StreamService()
        var configuration = PipelineConfiguration()
        configuration.attemptTimeout = timeout.map { .seconds($0) }
        var stream: MessageStream<ChatRequest, any Error>? = ChatRequest().schedule(
            with: ServiceClient(service, configuration: configuration),
            over: stubborn
        )
        try await stubborn.asked.wait(for: 1)
        if byClosing { stream?.close() }
        stream = nil
        gate.increment()
        try await transport.connection.closed.wait(for: 1)
        #expect(transport.connection.closes.count == 1)
        #expect(service.log.lines.isEmpty)
    }

    @Test("Cancelling the reader closes the socket with 1001, promptly and without a failure")
    func cancelledReader() async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        try await stream.waitUntilOpen()
        let reader = Task {
            for try await _ in stream {}
        }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        #expect(transport.connection.closes.map(\.code) == [.goingAway])
        await #expect(throws: CancellationError.self) { try await stream.send("late") }
        #expect(service.log.lines.isEmpty)
    }

    @Test(
        "A cancelled reader's error is the last that any iterator gets: no message that waited, and no second error",
        arguments: [true, false]
    )
    func nothingAfterCancellation(isClosedByPeer: Bool) async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        transport.connection.push(.text("one"), .text("two"))
        try await transport.connection.received.wait(for: 2)
        if isClosedByPeer {
            transport.connection.push(failure: StreamClosedError(.normalClosure))
            try await service.log.count.wait(for: 3)
        }
        let reader = Task {
            try? await Task.sleep(for: .seconds(3600))
            for try await _ in stream {}
        }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        for _ in 0..<2 {
            var iterator = stream.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
        }
        let late = Task {
            try? await Task.sleep(for: .seconds(3600))
            for try await _ in stream { Issue.record("a message came after the end") }
        }
        late.cancel()
        try await late.value
    }

    @Test("When the last copy is gone, the socket is closed with 1001; an iterator alone keeps it open")
    func dropped() async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        var stream: MessageStream<ChatRequest, any Error>? = ChatRequest().schedule(
            with: ServiceClient(service),
            over: transport
        )
        try await stream?.waitUntilOpen()
        var iterator = stream?.makeAsyncIterator()
        stream = nil
        transport.connection.push(.text("one"))
        #expect(try await iterator?.next()?.get() == "one")
        #expect(transport.connection.closes.isEmpty)
        iterator = nil
        try await transport.connection.closed.wait(for: 1)
        #expect(transport.connection.closes.map(\.code) == [.goingAway])
        #expect(service.log.lines.isEmpty)
    }

    @Test("A stream that does not open in time fails with `.timeout`", arguments: [nil, 5] as [Int?])
    func openTimeout(_ seconds: Int?) async throws {
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = .seconds(30)
        var request = ChatRequest()
        request.limits.openTimeout = seconds.map { .seconds($0) }
        let transport = ScriptedStreamTransport(gate: CountWatch())
        let service = StreamService()
        let client = ServiceClient(service, configuration: configuration)
        let stream = request.schedule(with: client, over: transport)
        try await clock.waitForSleeps(1)
        #expect(clock.waits == [.seconds(seconds ?? 30)])
        clock.advance(by: .seconds(seconds ?? 30))
        await #expect {
            for try await _ in stream {}
        } throws: { error in
            (error as? ServiceError)?.code == .timeout
        }
        #expect(service.log.lines.last == "process timeout")
    }

    @Test("A token that never comes does not delay the stream beyond its time limit for opening")
    func tokenTimeout() async throws {
        struct WaitingService: HttpService {
            let asked = CountWatch()
            var apiUrl: any UrlConvertible { "api.example.com" }
            var asyncHeader: HttpHeader {
                get async throws {
                    asked.increment()
                    try await CountWatch().wait(for: 1)
                    return [:]
                }
            }
        }
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let service = WaitingService()
        let transport = ScriptedStreamTransport()
        let client = ServiceClient(service, configuration: configuration)
        let stream = ChatRequest().schedule(with: client, over: transport)
        try await service.asked.wait(for: 1)
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(60))
        await #expect {
            try await stream.send("x")
        } throws: { error in
            (error as? ServiceError)?.code == .timeout
        }
        #expect(transport.requests.isEmpty)
    }
}

/// Opens although its task is cancelled.
private struct StubbornTransport: StreamTransport {
    let asked = CountWatch()
    private let transport: ScriptedStreamTransport
    private let gate: CountWatch

    init(_ transport: ScriptedStreamTransport, _ gate: CountWatch) {
        self.transport = transport
        self.gate = gate
    }

    func open(_ request: URLRequest, limits: StreamLimits) async throws -> any StreamConnection {
        asked.increment()
        let gate = gate
        await Task.detached { try? await gate.wait(for: 1) }.value
        return transport.connection
    }
}
