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

@Suite("FaultInjectingTransport", .timeLimit(.minutes(20)))
struct FaultInjectingTransportTests {
    let clock = ManualClock(autoAdvances: true)
    let server = ScriptedTransport([.respond(body: "abcdef")], repeatsLastStep: true)

    private func send(
        _ transport: FaultInjectingTransport,
        _ path: String = "/",
        deadline: Duration? = nil
    ) async throws -> Response {
        let url = try #require(URL(string: "http://h.example\(path)"))
        let context = CallContext(clock: clock, deadline: deadline.map(MonotonicInstant.init(sinceOrigin:)))
        return try await transport.send(URLRequest(url: url), body: .none, context: context)
    }

    /// The error of a send that is expected to fail.
    private func failure(_ transport: FaultInjectingTransport, deadline: Duration? = nil) async throws -> ServiceError {
        do {
            _ = try await send(transport, deadline: deadline)
        } catch let error as ServiceError {
            return error
        }
        throw ServiceError(.other, "an error was expected")
    }

    @Test(
        "A failure has its progress; from bodySent on the server has seen the request",
        arguments: [
            (TransportProgress.notSent, 0), (.headSent, 0), (.bodySent, 1), (.headReceived, 1), (.bytesReceived, 1),
        ]
    )
    func progress(progress: TransportProgress, sends: Int) async throws {
        let fault = Fault.fail(progress: progress, connectionReused: true)
        let error = try await failure(FaultInjectingTransport(server, plan: .list([fault])))
        #expect(error.code == .connectionLost)
        #expect(error.progress == progress)
        #expect(error.connectionReused)
        #expect(server.sent.count == sends)
    }

    @Test("A list applies to exchanges in order, nil skips one, and after its end all others are unaffected")
    func list() async throws {
        let fields: HeaderFields = ["Retry-After": "3"]
        let transport = FaultInjectingTransport(server, plan: .list([.status(503, fields: fields), nil, .status(429)]))
        var statuses: [Int] = []
        for _ in 0..<5 { statuses.append(try await send(transport).status.rawValue) }
        #expect(statuses == [503, 200, 429, 200, 200])
        #expect(transport.befallen == [1, 3])
        #expect(server.sent.count == 3)
        let again = FaultPlan.list([.status(500), nil], repeats: true)
        #expect((1...6).map { again.fault(for: $0) != nil } == [true, false, true, false, true, false])
        #expect(again.fault(for: 0) == nil)
        #expect(FaultPlan.list([], repeats: true).fault(for: 1) == nil)
    }

    @Test("Random faults depend on seed and number alone, and keep to their shares")
    func chance() {
        let plan = FaultPlan.chance(
            seed: 7,
            [(0.1, .status(500)), (0.2, .silence), (-1, .status(404)), (.nan, .silence)]
        )
        let first = (1...5000).map { plan.fault(for: $0) != nil }
        let second = (1...5000).reversed().map { plan.fault(for: $0) != nil }
        #expect(first == second.reversed())
        #expect((1350...1650).contains(first.filter { $0 }.count))
        let other = FaultPlan.chance(seed: 8, [(0.3, .silence)])
        #expect((1...5000).map { other.fault(for: $0) != nil } != first)
        #expect(FaultPlan.chance(seed: 1, [(2, .silence)]).fault(for: .max) != nil)
    }

    @Test(
        "A body is cut after the given bytes, or at its end if it is shorter",
        arguments: [(0, ""), (4, "abcd"), (9, "abcdef")]
    )
    func truncation(bytes: Int, readable: String) async throws {
        for step in [ScriptedTransport.Step.respond(body: "abcdef"), .stream(chunks: ["abc", "def"])] {
            let transport = FaultInjectingTransport(ScriptedTransport([step]), plan: .list([.truncate(after: bytes)]))
            var read: [UInt8] = []
            do {
                for try await chunk in try await send(transport).body { read += chunk.array }
                Issue.record("an error was expected")
            } catch let error as ServiceError {
                #expect(error.code == .connectionLost)
                #expect(error.progress == .bytesReceived)
            }
            #expect(read == Array(readable.utf8))
        }
    }

    @Test("A delay uses the call's clock; silence or a delay that is too long ends at the deadline")
    func time() async throws {
        let delayed = FaultInjectingTransport(
            server,
            plan: .list([.delay(.seconds(3)), .status(500).delayed(by: .seconds(2)), .silence, .delay(.seconds(30))])
        )
        #expect(try await send(delayed).status == .ok)
        #expect(try await send(delayed).status.rawValue == 500)
        #expect(clock.waits == [.seconds(3), .seconds(2)])
        #expect(try await failure(delayed, deadline: .seconds(9)).code == .timeout)
        #expect(clock.now.sinceOrigin == .seconds(9))
        #expect(try await failure(delayed, deadline: .seconds(12)).code == .timeout)
        #expect(server.sent.count == 1)
    }

    @Test("Only requests that are selected are numbered and affected")
    func exposure() async throws {
        let transport = FaultInjectingTransport(server, plan: .list([.status(500)], repeats: true)) {
            $0.url?.path == "/bad"
        }
        #expect(try await send(transport, "/good").status == .ok)
        #expect(try await send(transport, "/bad").status.rawValue == 500)
        #expect(transport.exposedCount == 1)
    }

    @Test("With many tasks every number is used once")
    func stress() async throws {
        let transport = FaultInjectingTransport(server, plan: .chance(seed: 3, [(0.25, .status(500))]))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<50 { _ = try? await send(transport) }
                }
            }
        }
        #expect(transport.exposedCount == 400)
        #expect(transport.befallen == transport.befallen.sorted())
        #expect(transport.befallen.count + server.sent.count == 400)
    }
}
