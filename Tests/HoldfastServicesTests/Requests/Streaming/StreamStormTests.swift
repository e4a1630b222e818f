// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

@Suite("Random operations on streams", .timeLimit(.minutes(20)))
struct StreamStormTests {
    @Test(
        "No order of sending, reading, opening, cancelling and closing leaves a waiter, or closes twice",
        arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64]
    )
    func storm(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<25 {
            let gate = Bool.random(using: &generator) ? CountWatch() : nil
            let transport = ScriptedStreamTransport(gate: gate)
            var request = ChatRequest()
            request.limits.unreadMessages = Int.random(in: 1...3, using: &generator)
            request.limits.unsentMessages = Int.random(in: 1...4, using: &generator)
            let service = StreamService()
            let stream = request.schedule(with: ServiceClient(service), over: transport)
            let senders = (0..<Int.random(in: 0...6, using: &generator)).map { number in
                Task { try await stream.send(number == 3 ? "bad" : "\(number)") }
            }
            let reader = Task {
                var results: [Bool] = []
                for try await result in stream { results.append((try? result.get()) != nil) }
                return results
            }
            let messages = Int.random(in: 0...8, using: &generator)
            for number in 0..<messages { transport.connection.push(.text(number % 3 == 2 ? "bad" : "good")) }
            for _ in 0..<Int.random(in: 0...20, using: &generator) { await Task.yield() }
            if Bool.random(using: &generator) { gate?.increment() }
            if Bool.random(using: &generator) { senders.randomElement(using: &generator)?.cancel() }
            let ending = Int.random(in: 0...3, using: &generator)
            switch ending {
            case 0: transport.connection.push(failure: StreamClosedError(.normalClosure))
            case 1: stream.close()
            case 2: reader.cancel()
            default:
                transport.connection.failSends(ServiceError(.connectionLost, "scripted"))
                transport.connection.push(failure: ServiceError(.connectionLost, "scripted"))
            }
            gate?.increment()
            for sender in senders { _ = await sender.result }
            switch await reader.result {
            case .success(let results):
                #expect(ending == 1 && results.count <= messages)
            case .failure(let error):
                #expect(ending != 1)
                #expect((error is CancellationError) == (ending == 2))
            }
            await #expect(throws: (any Error).self) { try await stream.send("late") }
            #expect(transport.connection.closes.count <= 1)
            let ends = service.log.lines.filter { $0.hasPrefix("process c") }
            #expect(ends.count == (ending == 0 || ending == 3 ? 1 : 0))
        }
    }
}
