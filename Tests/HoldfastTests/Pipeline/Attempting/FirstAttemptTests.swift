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

@Suite("An attempt without governance is made like any other", .timeLimit(.minutes(20)))
struct FirstAttemptTests {
    /// The log of the straight way, which must be that of every other one.
    @discardableResult
    private func check(_ scenario: AttemptScenario, sourceLocation: SourceLocation = #_sourceLocation) async -> [String]
    {
        let straight = await scenario.seen(.straight)
        for way in AttemptWay.allCases where way != .straight {
            // A deadline, however far away, is told as one.
            #expect(await scenario.seen(way) == straight, "\(way)", sourceLocation: sourceLocation)
        }
        return straight
    }

    @Test("Whatever the status", arguments: [200, 204, 206, 300, 304, 399, 400, 401, 404, 408, 429, 500, 503, 599])
    func statuses(_ status: Int) async {
        let seen = await check(AttemptScenario(steps: [.respond(status, ["X-B": "2"], body: "x")]))
        #expect(seen.contains { $0.hasPrefix("send http://origin.example/a attempt 1 ") })
        #expect(seen.contains("retrier made") == (status >= 400))
        #expect(seen.contains("body x"))
    }

    @Test("A response that took some time, after interim ones")
    func delayed() async {
        let step = ScriptedTransport.Step.respond(200, body: "x").delayed(by: .seconds(7))
            .after(interim: [ResponseHead(status: 103)])
        let seen = await check(AttemptScenario(steps: [step]))
        #expect(seen.last == "waits [\(Duration.seconds(7))], now \(MonotonicInstant(sinceOrigin: .seconds(7)))")
    }

    @Test("Failures of any kind, with and without retries", arguments: [0, 1, 2])
    func failures(_ retries: Int) async {
        let failures: [[ScriptedTransport.Step]] = [
            [.fail(progress: .notSent), .respond(200, body: "x")],
            [.fail(.connectionLost, progress: .headSent, connectionReused: true), .respond(200)],
            [.fail(.timeout, progress: .bodySent), .fail(.resolve, progress: .notSent), .respond(201)],
            [.fail(progress: .bodySent), .fail(progress: .notSent), .fail(progress: .notSent)],
            [.fail(Refused(reason: "not ours")), .respond(200)],
            [.respond(503, ["Retry-After": "3"], body: "busy"), .respond(200)],
            [.respond(500), .fail(progress: .bodySent), .respond(404)],
            [.respond(421), .respond(200)],
            [.respond(417), .respond(200)],
            [.stream(500, chunks: ["a", "b"]), .stream(200, chunks: ["c", "d"])],
        ]
        for steps in failures { await check(AttemptScenario(steps: steps, retries: retries)) }
    }

    @Test("A transport's own cancellation counts as one, and nothing is retried after it")
    func cancellationOfTheTransport() async {
        for error in [CancellationError() as any Error, URLError(.cancelled)] {
            let seen = await check(AttemptScenario(steps: [.fail(error), .respond()], retries: 3))
            #expect(seen.contains("error CancellationError"))
            #expect(seen.contains { $0.hasPrefix("cancel ") })
        }
    }

    @Test("The attempt timeout applies, and there may be none")
    func attemptTimeout() async {
        for retries in 0...1 {
            let scenario = AttemptScenario(
                steps: [.silence, .respond(200).delayed(by: .seconds(9))],
                retries: retries,
                attemptTimeout: .seconds(10)
            )
            #expect(await check(scenario).contains { $0.contains("10.0 seconds") })
        }
        let scenario = AttemptScenario(steps: [.respond().delayed(by: .seconds(900))], attemptTimeout: nil)
        let straight = await scenario.seen(.straight)
        #expect(straight.contains { $0.hasPrefix("response 200") })
        #expect(straight == (await scenario.seen(.prepared)))
    }

    @Test(
        "What a transport says about its response is kept: its source, its request time and its user"
    )
    func shaped() async {
        let start = ManualClock().timestamp
        let shapes: [@Sendable (inout Response) -> Void] = [
            { $0.url = URL(string: "http://origin.example/elsewhere") },
            { $0.source = .inProcess },
            { $0.source = .fresh },
            { $0.source = .network(attempts: 5) },
            { $0.requestTime = start.advanced(by: .seconds(-100)) },
            { $0.requestTime = start.advanced(by: .seconds(1)) },
            { $0.responseTime = start.advanced(by: .seconds(-100)) },
            { $0.presentation = .hidden },
            { $0.presentation = .presented(.fields(["X-Other": "1"])) },
            { response in
                response.attempts = (1...2).map {
                    AttemptRecord(
                        number: $0,
                        start: MonotonicInstant(sinceOrigin: .zero),
                        end: MonotonicInstant(sinceOrigin: .seconds($0))
                    )
                }
            },
        ]
        for shape in shapes {
            for status in [200, 503] {
                let step = ScriptedTransport.Step.respond(status).delayed(by: .seconds(3))
                await check(AttemptScenario(steps: [step], shaping: shape))
            }
        }
    }

    @Test("What the transport adds below the hooks is reported with the request that was sent")
    func implicit() async {
        let seen = await check(AttemptScenario(steps: [.respond()], implicit: ["X-A": "hidden", "Cookie": "a=b"]))
        #expect(seen.contains { $0.contains("answers [\"Cookie: a=b\", \"X-A: 1\"]") })
    }

    @Test("Redirects are followed, each hop in its own attempt", arguments: [301, 303, 307])
    func redirects(_ status: Int) async {
        for method in ["GET", "POST"] {
            let scenario = AttemptScenario(
                steps: [.respond(status, ["Location": "/b"]), .respond(429), .respond(200, body: "there")],
                request: .request(method, "http://origin.example/a"),
                body: method == "POST" ? .bytes(ByteChunk([1, 2])) : nil,
                retries: 1
            )
            let seen = await check(scenario)
            #expect(seen.contains { $0.hasPrefix("send http://origin.example/b attempt 2") })
        }
    }

    @Test("A hop does not request a new connection because the previous hop did")
    func hopAfterBlamedConnection() async {
        let steps: [ScriptedTransport.Step] = [
            .respond(421), .respond(307, ["Location": "/b"]), .respond(200, body: "there"),
        ]
        let sends = await check(AttemptScenario(steps: steps, retries: 1)).filter { $0.hasPrefix("send ") }
        #expect(sends.map { $0.contains("new connection true") } == [false, true, false])
    }

    @Test("Bodies of every form", arguments: ["none", "bytes", "factory", "oneShot"])
    func bodies(_ form: String) async {
        for steps in [[ScriptedTransport.Step.respond()], [.fail(progress: .bodySent), .respond()]] {
            func scenario() -> AttemptScenario {
                let body: RequestBody =
                    switch form {
                    case "bytes": .bytes(ByteChunk([1]))
                    case "factory": .factory { OneChunk("x") }
                    case "oneShot": .oneShot(OneChunk("x"))
                    default: .none
                    }
                return AttemptScenario(
                    steps: steps,
                    request: .request("PUT", "http://origin.example/a"),
                    body: body,
                    retries: 1
                )
            }
            let straight = await scenario().seen(.straight)
            #expect(await scenario().seen(.prepared) == straight)
        }
    }

    @Test("Options for attempts apply without governance")
    func options() async {
        var rules = CallOptions()
        rules.retryRules = RetryRules(backoff: Backoff(base: .seconds(1), jitter: .none), maxAttempts: 2)
        let busy: [ScriptedTransport.Step] = [.respond(503), .respond(200)]
        var seen = await check(AttemptScenario(steps: busy, options: rules))
        #expect(seen.contains { $0.hasPrefix("response 200") })
        #expect(!seen.contains("retrier made"))

        var none = CallOptions()
        none.retryRules = RetryRules.never
        seen = await check(AttemptScenario(steps: busy, options: none, retries: 1))
        #expect(seen.contains { $0.hasPrefix("response 503") })

        var prepares = CallOptions()
        prepares.prepare = [{ request, _ in request.setValue("1", forHTTPHeaderField: "X-Prepared") }]
        seen = await check(AttemptScenario(steps: [.respond()], options: prepares))
        #expect(seen.contains { $0.hasPrefix("success") && $0.contains("X-Prepared: 1") })

        var checked = CallOptions()
        checked.acceptance = Acceptance { _ in throw ServiceError(.decodingFailed, "scripted") }
        checked.acceptance?.checksAttempts = true
        seen = await check(AttemptScenario(steps: [.respond(), .respond()], options: checked, retries: 1))
        #expect(seen.count { $0.hasPrefix("send ") } == 2)

        var limit = CallOptions()
        limit.timeout = .seconds(5)
        let scenario = AttemptScenario(steps: [.silence], options: limit)
        #expect(await scenario.seen(.straight) == (await scenario.seen(.prepared)))
        #expect(await scenario.seen(.straight).contains { $0.hasPrefix("error deadline") })
    }

    @Test("The layer above is told whether retries were given up below", arguments: [200, 404, 503])
    func scope(_ status: Int) async {
        let scenario = AttemptScenario(steps: [.respond(status)], isExhaustedBefore: true)
        #expect(await check(scenario).contains("retried below: false"))
    }

    @Test(
        "A caller that is gone before the send sends nothing; one that leaves during it ends it",
        arguments: [true, false]
    )
    func cancelled(_ isBefore: Bool) async throws {
        var logs: [[String]] = []
        for way in [AttemptWay.straight, .prepared] {
            let log = HookLog()
            let transport = ScriptedTransport([.silence])
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock()
            if way == .prepared { configuration.prepare = [{ _, _ in }] }
            let hook = RecordingHook(name: "hook", log: log)
            let pipeline = Pipeline(transport: transport, hooks: [hook], configuration: configuration)
            let call = Task {
                if isBefore { withUnsafeCurrentTask { $0?.cancel() } }
                return try await pipeline.send(.get())
            }
            if !isBefore {
                try await transport.waitForSends(1)
                call.cancel()
            }
            await #expect(throws: CancellationError.self) { try await call.value }
            log.add("\(transport.sent.count) sent")
            logs.append(log.entries)
        }
        #expect(logs[0] == ["hook.schedule", "hook.cancel", isBefore ? "0 sent" : "1 sent"])
        #expect(logs[0] == logs[1])
    }
}
