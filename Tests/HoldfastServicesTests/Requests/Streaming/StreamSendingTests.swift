// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

@Suite("Sending over streams", .timeLimit(.minutes(20)))
struct StreamSendingTests {
    @Test("S30: messages sent before the stream is open wait, and are sent in the order of the calls")
    func queued() async throws {
        let gate = CountWatch()
        let transport = ScriptedStreamTransport(gate: gate)
        var request = ChatRequest()
        // However busy the machine is: a stream that gave up opening would be waited for in vain.
        request.limits.openTimeout = .seconds(86_400)
        let stream = request.schedule(with: ServiceClient(StreamService()), over: transport)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { try await stream.send("\(number)") }
                while stream.unsentMessages <= number { await Task.yield() }
            }
            #expect(transport.connection.sent.isEmpty)
            gate.increment()
            try await group.waitForAll()
        }
        #expect(transport.connection.sent == (0..<20).map { .text("\($0)") })
        #expect(stream.unsentMessages == 0)
    }

    @Test("Messages beyond the queue limit are refused and reported as failed, and the stream continues")
    func bounded() async throws {
        let gate = CountWatch()
        let transport = ScriptedStreamTransport(gate: gate)
        var request = ChatRequest()
        request.limits.unsentMessages = 3
        let service = StreamService()
        let stream = request.schedule(with: ServiceClient(service), over: transport)
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<5 {
                group.addTask {
                    do {
                        try await stream.send("\(number)")
                        return true
                    } catch {
                        #expect((error as? ServiceError)?.code == .tooManyInFlight)
                        return false
                    }
                }
            }
            var outcomes = [await group.next(), await group.next()]
            gate.increment()
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        #expect(outcomes == [false, false, true, true, true])
        #expect(transport.connection.sent.count == 3)
        #expect(service.log.lines.filter { $0 == "process too-many-in-flight" }.count == 2)
        try await stream.send("more")
    }

    @Test("A message that cannot be encoded, or is too long, fails alone and is reported once; nothing of it is sent")
    func notEncodable() async throws {
        let transport = ScriptedStreamTransport()
        var request = ChatRequest()
        request.limits.messageSize = 8
        let service = StreamService()
        let stream = request.schedule(with: ServiceClient(service), over: transport)
        await #expect {
            try await stream.send("bad")
        } throws: { error in
            (error as? ServiceError)?.code == .encodingFailed
                && (error as? ServiceError)?.cause is ChatRequest.BadMessage
        }
        await #expect {
            try await stream.send("far too long")
        } throws: { error in
            (error as? ServiceError)?.code == .bodyTooLarge
        }
        #expect(
            service.log.lines == [
                "second encoding-failed", "first encoding-failed", "process encoding-failed",
                "second body-too-large", "first body-too-large", "process body-too-large",
            ]
        )
        try await stream.send("good")
        #expect(transport.connection.sent == [.text("good")])
    }

    @Test("If sending breaks, the stream ends: one failure is reported, and all waiters get it")
    func brokenSend() async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        transport.connection.failSends(ServiceError(.connectionLost, "scripted"))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    await #expect(throws: ServiceError.self) { try await stream.send("x") }
                }
            }
        }
        await #expect(throws: ServiceError.self) { for try await _ in stream {} }
        #expect(
            service.log.lines == [
                "second connection-lost", "first connection-lost", "process connection-lost",
            ]
        )
        #expect(transport.connection.closes.count == 1)
    }

    @Test("A queued send that is cancelled returns at once, and its message is not sent")
    func cancelledSend() async throws {
        let gate = CountWatch()
        let transport = ScriptedStreamTransport(gate: gate)
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        let sender = Task { try await stream.send("never") }
        try await transport.opens.wait(for: 1)
        sender.cancel()
        await #expect(throws: CancellationError.self) { try await sender.value }
        gate.increment()
        try await stream.send("after")
        #expect(transport.connection.sent == [.text("after")])
        #expect(service.log.lines.isEmpty)
    }

    @Test("A ping waits until the stream is open, and for its pong")
    func ping() async throws {
        let gate = CountWatch()
        let transport = ScriptedStreamTransport(gate: gate)
        let stream = ChatRequest().schedule(with: ServiceClient(StreamService()), over: transport)
        let ping = Task { try await stream.ping() }
        try await transport.opens.wait(for: 1)
        #expect(transport.connection.pings.count == 0)
        gate.increment()
        try await ping.value
        #expect(transport.connection.pings.count == 1)
    }
}
