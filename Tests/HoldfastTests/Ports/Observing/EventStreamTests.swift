// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(20))) struct EventStreamTests {
    private func event(_ number: UInt64, _ name: ServiceEvent.Name = .callStarted) -> ServiceEvent {
        ServiceEvent(name, callID: CallID(number: number), timestamp: Timestamp(secondsSinceEpoch: 0))
    }

    @Test("The events of a call come in order, and the sequence ends after finish()")
    func order() async throws {
        let stream = EventStream()
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock()
        configuration.observers.append(stream)
        let pipeline = Pipeline(transport: ScriptedTransport([.respond(body: "x")]), configuration: configuration)
        _ = try await pipeline.send(URLRequest(url: URL(filePath: "/").absoluteURL))
        stream.finish()
        stream.observe(event(1))
        var names: [ServiceEvent.Name] = []
        for await event in stream.events { names.append(event.name) }
        #expect(names == [.callStarted, .attemptStarted, .attemptEnded, .callEnded])
        #expect(stream.droppedCount == 0)
    }

    @Test("Beyond the limit the oldest are dropped and counted")
    func limit() async {
        let stream = EventStream(limit: 3)
        for number in 1...10 { stream.observe(event(UInt64(number))) }
        stream.finish()
        var numbers: [UInt64] = []
        for await event in stream.events { numbers.append(event.callID.number) }
        #expect(numbers == [8, 9, 10])
        #expect(stream.droppedCount == 7)
    }

    @Test("Only the requested event names are delivered")
    func names() async {
        let stream = EventStream(names: [.redirected])
        stream.observe(event(1))
        stream.observe(event(2, .redirected))
        stream.finish()
        var numbers: [UInt64] = []
        for await event in stream.events { numbers.append(event.callID.number) }
        #expect(numbers == [2])
    }

    @Test("The sequence ends when the stream is released")
    func letGo() async {
        var stream: EventStream? = EventStream()
        let events = stream?.events
        stream?.observe(event(1))
        stream = nil
        var count = 0
        if let events { for await _ in events { count += 1 } }
        #expect(count == 1)
    }
}
