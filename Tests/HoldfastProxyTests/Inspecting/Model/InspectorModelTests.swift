// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("What the inspector's model records of calls", .timeLimit(.minutes(20)))
    struct InspectorModelTests {
        @Test("Hits and misses are counted in the second they were made in, with the totals of the cache")
        func seconds() async throws {
            let bench = InspectorBench()
            try await bench.load("http://origin.example/a")
            bench.clock.advance(by: .seconds(2))
            for _ in 0..<3 { try await bench.load("http://origin.example/a") }
            bench.clock.advance(by: .seconds(1))
            let seconds = bench.model.seconds()
            #expect(seconds.suffix(4).map(\.misses) == [1, 0, 0, 0])
            #expect(seconds.suffix(4).map(\.hits) == [0, 0, 3, 0])
            #expect(seconds.map(\.bytesSaved).reduce(0, +) == bench.cache.statistics.bytesSaved)
            #expect(seconds.map(\.requests).reduce(0, +) == 4)
        }

        @Test("A call is recorded with its decision, its clause and its failed attempts")
        func call() async throws {
            let failures = CountWatch()
            let bench = InspectorBench(retrierFactory: .default) { _ in
                failures.increment()
                if failures.count < 3 { return .respond(503) }
                return .respond(200, ["Cache-Control": "max-age=60"])
            }
            try await bench.load("http://origin.example/a?token=geheim")
            let call = try #require(bench.model.calls(after: 0, limit: 9).calls.first)
            #expect(call.attempts.map(\.status) == [503, 503])
            #expect(call.attempts.map(\.number) == [1, 2])
            #expect(call.attempts.allSatisfy { $0.delay != nil && $0.word == nil })
            #expect(call.decision?.outcome == .miss)
            #expect(call.decision?.reason == .notStored)
            #expect(call.status == 200)
            let facts = CallFacts(call)
            #expect(facts.url == "http://origin.example/a?token=REDACTED")
            #expect(facts.sends == 3)
            #expect(facts.decision?.section == "RFC 9111 §4")
            #expect(facts.decision?.storage == "stored")
        }

        @Test("A call that is given up says why")
        func givenUp() async throws {
            let bench = InspectorBench(retrierFactory: .default) { _ in .fail(.connectionLost, progress: .bodySent) }
            await #expect(throws: ServiceError.self) { try await bench.load("http://origin.example/a") }
            let call = try #require(bench.model.calls(after: 0, limit: 9).calls.first)
            #expect(call.errorCode == "connection-lost")
            #expect(call.attempts.last?.word == "attempts-exhausted")
            #expect(call.attempts.last?.delay == nil)
        }

        @Test("The last decision of a URL is that of its last call")
        func lastDecision() async throws {
            let bench = InspectorBench()
            try await bench.load("http://origin.example/a")
            #expect(bench.model.lastDecisions(of: ["http://origin.example/a"]).first??.decision.outcome == .miss)
            try await bench.load("http://origin.example/a")
            let decisions = bench.model.lastDecisions(of: ["http://origin.example/a", "http://origin.example/b"])
            #expect(decisions.first??.decision.reason == .fresh)
            #expect(decisions.count == 2 && decisions[1] == nil)
        }

        @Test("A circuit is shown as open from the opening event to the closing event")
        func circuits() {
            let bench = InspectorBench()
            var event = ServiceEvent(.circuitOpened, callID: CallID(number: 1), timestamp: bench.clock.timestamp)
            event.detail = "http://origin.example"
            event.delay = .seconds(30)
            bench.model.observe(event)
            #expect(bench.model.openCircuits == ["http://origin.example": bench.clock.now.advanced(by: .seconds(30))])
            event = ServiceEvent(.circuitClosed, callID: CallID(number: 2), timestamp: bench.clock.timestamp)
            event.detail = "http://origin.example"
            bench.model.observe(event)
            #expect(bench.model.openCircuits.isEmpty)
        }

        @Test("Calls from many tasks are all counted once")
        func manyTasks() async throws {
            let bench = InspectorBench()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask {
                        for number in 0..<50 { try await bench.load("http://origin.example/\(task)/\(number % 5)") }
                    }
                }
                try await group.waitForAll()
            }
            let seconds = bench.model.seconds()
            #expect(seconds.map(\.requests).reduce(0, +) == 400)
            #expect(seconds.map { $0.hits + $0.misses + $0.collapsed }.reduce(0, +) == 400)
            #expect(bench.model.calls(after: 0, limit: .max).newest == 400)
            #expect(bench.model.calls(after: 0, limit: .max).calls.count == RecentCalls.limit)
        }
    }
#endif
