// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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

@Suite("E11: body fuzz", .timeLimit(.minutes(20)))
struct BodyFuzzTests {
    /// Reads part of the content, notes it, and fails; the last time it reads all and answers.
    final class BreakingTransport: Transport {
        struct State {
            var cuts: ArraySlice<Int>
            var received: [[UInt8]] = []
            var most = 0
        }

        let state: Mutex<State>
        let status: Int

        init(cuts: [Int], status: Int) {
            state = Mutex(State(cuts: cuts[...]))
            self.status = status
        }

        var enforcesDeadline: Bool { true }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            let source: any ByteSource
            switch body.form {
            case .factory(_, let make): source = try await make()
            case .oneShot(_, let own): source = own
            default: return Response(status: .badRequest)
            }
            let cut = state.withLock { $0.cuts.popFirst() }
            var bytes: [UInt8] = []
            while cut.map({ bytes.count < $0 }) ?? true, let chunk = try await source.next() { bytes += Array(chunk) }
            state.withLock { $0.received.append(bytes) }
            guard cut == nil else {
                // The connection breaks, or the server answers before it has read everything.
                if status > 0 { return Response(status: StatusCode(rawValue: status)) }
                throw ServiceError(.connectionLost, "broken", progress: .headSent)
            }
            return Response(status: .ok)
        }
    }

    @Test(
        "Complaint 5 of 12: for any chunks, cut and limit: identical bytes at the server or no retry, bounded memory",
        arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64]
    )
    func fuzz(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for round in 0..<60 {
            let size = Int.random(in: 0...400, using: &generator)
            let content = (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) }
            var chunks: [ByteChunk] = []
            var rest = content[...]
            while !rest.isEmpty {
                let count = min(rest.count, Int.random(in: 1...64, using: &generator))
                chunks.append(ByteChunk(copying: Array(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
            let limit = Int.random(in: 1...500, using: &generator)
            let cuts = (0..<Int.random(in: 0...2, using: &generator)).map { _ in
                Int.random(in: 0...450, using: &generator)
            }
            let status = [0, 503].randomElement(using: &generator) ?? 0
            let transport = BreakingTransport(cuts: cuts, status: status)
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            let pipeline = Pipeline(
                transport: transport,
                retrierFactory: .backoff(replayRules(limit)),
                configuration: configuration
            )
            let source = ListSource(chunks)
            let note: Comment =
                "seed \(seed), round \(round): \(size) bytes in \(chunks.count) chunks, cuts \(cuts), limit \(limit)"
            let outcome: Result<Response, any Error>
            do {
                let request = URLRequest.request("PUT", "http://origin.example/a")
                outcome = .success(try await pipeline.send(request, body: .oneShot(source)))
            } catch {
                outcome = .failure(error)
            }
            let received = transport.state.withLock { $0.received }
            #expect(received.allSatisfy { content.starts(with: $0) }, note)
            #expect(source.overlaps == 0, note)
            switch outcome {
            case .success(let response) where response.status == .ok:
                #expect(received.last == content, note)
                #expect(received.count == cuts.count + 1, note)
            case .success(let response):
                #expect(response.status == .serviceUnavailable, note)
                #expect(response.attempts.last?.stopReason == .notReplayable, note)
                #expect((received.last?.count ?? 0) > limit, note)
            case .failure(let error as ServiceError):
                #expect(error.code == .connectionLost, "the original failure: \(note)")
                #expect(error.attempts.last?.stopReason == .notReplayable, note)
                #expect((received.last?.count ?? 0) > limit, note)
            case .failure(let error):
                Issue.record("\(error): \(note)")
            }
        }
    }

    @Test("Memory: never more than the limit is kept once a chunk was passed on", arguments: [1, 2, 3, 4] as [UInt64])
    func memory(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for round in 0..<100 {
            let chunks = (0..<Int.random(in: 0...20, using: &generator)).map { index in
                ByteChunk(copying: [UInt8](repeating: UInt8(index), count: Int.random(in: 1...50, using: &generator)))
            }
            let limit = Int.random(in: 1...300, using: &generator)
            let body = ReplayableBody(ListSource(chunks), limit: limit)
            for attempt in 1...3 where body.isWhole {
                let reader = body.makeReader()
                var left = attempt == 3 ? .max : Int.random(in: 0...chunks.count, using: &generator)
                while left > 0, try await reader.next() != nil {
                    left -= 1
                    #expect(body.keptBytes <= limit, "seed \(seed), round \(round), limit \(limit)")
                }
            }
        }
    }

    @Test("After the response head nothing is kept for another attempt, unless a redirect may need the content")
    func released() async throws {
        for (statuses, isWhole) in [([200], false), ([307, 404], true)] {
            let held = HoldingTransport(statuses)
            let pipeline = Pipeline(transport: held, retrierFactory: .backoff())
            let source = ListSource([ByteChunk("ab"), ByteChunk("cd")])
            let request = URLRequest.request("PUT", "http://origin.example/a")
            let response = try await pipeline.send(request, body: .oneShot(source))
            #expect(response.status.rawValue == statuses.last)
            #expect(held.bodies.first?.isWhole == isWhole)
            // The redirect was followed with the content from its start.
            #expect(held.received == Array(repeating: Array("abcd".utf8), count: statuses.count))
        }
    }

    /// Reads the content, keeps hold of the body, and answers by a script.
    private final class HoldingTransport: Transport {
        private let state: Mutex<(statuses: ArraySlice<Int>, bodies: [RequestBody], received: [[UInt8]])>

        init(_ statuses: [Int]) {
            state = Mutex((statuses[...], [], []))
        }

        var bodies: [RequestBody] { state.withLock { $0.bodies } }
        var received: [[UInt8]] { state.withLock { $0.received } }

        func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
            guard case .factory(_, let make) = body.form else { return Response(status: .badRequest) }
            let bytes = try await make().readAll()
            let status = state.withLock { state in
                state.bodies.append(body)
                state.received.append(bytes)
                return state.statuses.popFirst() ?? 500
            }
            return Response(status: StatusCode(rawValue: status), fields: ["Location": "/b"])
        }
    }

    private func replayRules(_ limit: Int) -> RetryRules {
        var rules = RetryRules(maxAttempts: 5)
        rules.replayLimit = limit
        return rules
    }
}
