// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The retry pool in a pipeline", .timeLimit(.minutes(20)))
struct RetryPoolPipelineTests {
    private func pipeline(
        _ transport: any Transport,
        _ factory: any RetrierFactory,
        clock: ManualClock,
        observers: [any EventObserver] = []
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.observers = observers
        return Pipeline(transport: transport, retrierFactory: factory, configuration: configuration)
    }

    @Test(
        "Many calls meet one short fault at the same time, and all succeed",
        arguments: [ScriptedTransport.Step.respond(503), .fail(.connectionLost, progress: .bodySent)],
        [8, 32]
    )
    func blip(_ failure: ScriptedTransport.Step, _ count: Int) async throws {
        let clock = ManualClock(autoAdvances: true)
        let paths = PathSet()
        let transport = ScriptedTransport { request in
            paths.insert(request.url?.path ?? "") ? failure : .respond(200)
        }
        let pipeline = pipeline(transport, BackoffRetrierTests.seeded(), clock: clock)
        try await withThrowingTaskGroup(of: StatusCode.self) { group in
            for number in 0..<count {
                group.addTask { try await pipeline.send(.get("http://origin.example/\(number)")).status }
            }
            for try await status in group { #expect(status == .ok) }
        }
        #expect(transport.sent.count == 2 * count)
    }

    @Test("If a retry is refused when it is due, the call keeps its last response, and no retry was announced")
    func refused() async throws {
        let clock = ManualClock(autoAdvances: true)
        let recorder = EventRecorder()
        let transport = ScriptedTransport([.respond(500, body: "what happened")], repeatsLastStep: true)
        let factory = BackoffRetrierTests.seeded()
        let pipeline = pipeline(transport, factory, clock: clock, observers: [recorder])
        let first = try await pipeline.send(.get())
        #expect(first.attempts.count == 4 && first.attempts.last?.stopReason == .attemptsExhausted)
        let second = try await pipeline.send(.get())
        #expect(second.attempts.last?.stopReason == .budget)
        #expect(try await second.body.data() == Data("what happened".utf8))
        #expect(recorder.events(.retriesStopped).last?.stopReason == .budget)
        #expect(recorder.events(.retryScheduled).count == 3)
        let record = try #require(second.attempts.last)
        #expect(record.delay == nil && record.description.contains("then none"))
    }

    @Test(".interactive ends within ten seconds, whatever the server does", arguments: [false, true])
    func interactive(isSilent: Bool) async throws {
        let clock = ManualClock(autoAdvances: true)
        let refusing = ScriptedTransport([.respond(503, [.retryAfter: "2"])], repeatsLastStep: true)
        let pipeline = pipeline(isSilent ? SilentTransport() : refusing, .interactive, clock: clock)
        _ = try? await pipeline.send(.get())
        #expect(clock.now.sinceOrigin > .zero && clock.now.sinceOrigin <= .seconds(10))
        // A call that says for itself how long it may take is believed.
        let start = clock.now
        var options = CallOptions()
        options.timeout = .seconds(1)
        _ = try? await pipeline.send(.get(), options: options)
        #expect(start.duration(to: clock.now) <= .seconds(1))
    }

    @Test("An origin with a spent budget is not forgotten for lack of room, and does not return with a new one")
    func evicted() async throws {
        let clock = ManualClock(autoAdvances: true)
        let transport = ScriptedTransport { request in
            .respond(request.url?.host() == "down.example" ? 500 : 200)
        }
        let factory = BackoffRetrierTests.seeded()
        let pipeline = pipeline(transport, factory, clock: clock)
        let down = try #require(URL(string: "http://down.example/"))
        _ = try await pipeline.send(.get(down.absoluteString))
        for number in 0..<1_500 {
            _ = try await pipeline.send(.get("http://host\(number).example/"))
            clock.advance(by: .milliseconds(1))
        }
        let governor = try #require(factory.governor)
        #expect(governor.status(of: down, now: clock.now)?.balance == 0)
        let host = try #require(URL(string: "http://host0.example/"))
        #expect(governor.status(of: host, now: clock.now) == nil)
        // A few minutes later there is nothing to remember.
        clock.advance(by: .seconds(600))
        for number in 0..<1_500 {
            _ = try await pipeline.send(.get("http://other\(number).example/"))
            clock.advance(by: .milliseconds(1))
        }
        #expect(governor.status(of: down, now: clock.now) == nil)
    }

    @Test("A retry that is granted, given back and granted again counts once")
    func countsOnce() async throws {
        let clock = ManualClock()
        let account = RetryGovernor().account(for: .get(), now: clock.now)
        func permission() async throws -> RetryGrant {
            let grant = try await account.permission(
                .transient,
                rules: .default,
                traffic: .caller,
                deadline: nil,
                context: CallContext(clock: clock),
                isWaiting: { _ in }
            )
            return try #require(grant)
        }
        account.giveBack(try await permission(), now: clock.now)
        account.ended(try await permission(), succeeded: true, now: clock.now)
        #expect(account.status(now: clock.now).counts.retries == 1)
    }

    @Test("A cancelled call leaves the queue at once and returns what it was granted")
    func cancelled() async throws {
        let clock = ManualClock()
        let account = RetryGovernor().account(for: .get(), now: clock.now)
        let context = CallContext(clock: clock)
        @Sendable func permission() async throws -> RetryGrant? {
            try await account.permission(
                .transient,
                rules: .default,
                traffic: .caller,
                deadline: nil,
                context: context,
                isWaiting: { _ in }
            )
        }
        let (first, second) = (try await permission(), try await permission())
        let waiting = (0..<3).map { _ in Task { try await permission() } }
        try await clock.waitForSleeps(3)
        #expect(account.status(now: clock.now).waiting == 3)
        waiting[0].cancel()
        await #expect(throws: CancellationError.self) { try await waiting[0].value }
        #expect(account.status(now: clock.now).waiting == 2)
        account.giveBack(try #require(first), now: clock.now)
        account.giveBack(try #require(second), now: clock.now)
        for task in waiting.dropFirst() { account.giveBack(try #require(try await task.value), now: clock.now) }
        #expect(account.status(now: clock.now).waiting == 0 && clock.sleeperCount == 0)
        #expect(!account.isBusy(now: clock.now))
    }

    @Test(
        "Many tasks, some cancelled, on several threads: no slot, token, waiter or sleeper is left",
        arguments: 1...4
    )
    func stress(seed: UInt64) async throws {
        let clock = ManualClock()
        let account = RetryGovernor(generator: SeededGenerator(seed: seed)).account(for: .get(), now: clock.now)
        let context = CallContext(clock: clock)
        var source = SeededGenerator(seed: seed)
        let (granted, done) = (CountWatch(), CountWatch())
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while done.count < 400 {
                    clock.advance(by: .milliseconds(1))
                    await Task.yield()
                }
            }
            for _ in 0..<400 {
                let cancels = Int.random(in: 0..<4, using: &source) == 0
                let fails = Int.random(in: 0..<5, using: &source) == 0
                let gives = Int.random(in: 0..<6, using: &source) == 0
                group.addTask {
                    let call = Task {
                        account.ended(succeeded: !fails, now: clock.now)
                        let deadline = clock.now.advanced(by: .seconds(10))
                        let grant = try await account.permission(
                            .transient,
                            rules: .patient,
                            traffic: .caller,
                            deadline: deadline,
                            context: context,
                            isWaiting: { _ in }
                        )
                        guard let grant else { return }
                        granted.increment()
                        await Task.yield()
                        if gives {
                            account.giveBack(grant, now: clock.now)
                        } else {
                            account.ended(grant, succeeded: !fails, now: clock.now)
                        }
                    }
                    if cancels {
                        await Task.yield()
                        call.cancel()
                    }
                    _ = await call.result
                    done.increment()
                }
            }
        }
        #expect(granted.count > 50, "seed \(seed)")
        #expect(account.status(now: clock.now).waiting == 0, "seed \(seed)")
        for _ in 0..<20_000 where clock.sleeperCount > 0 { await Task.yield() }
        #expect(clock.sleeperCount == 0, "seed \(seed)")
        clock.advance(by: .seconds(600))
        #expect(!account.isBusy(now: clock.now), "seed \(seed)")
    }
}

/// The paths that were asked for.
private final class PathSet: Sendable {
    private let paths = Mutex<Set<String>>([])

    /// Whether it is new.
    func insert(_ path: String) -> Bool {
        paths.withLock { $0.insert(path).inserted }
    }
}

/// Never answers, and heeds no deadline.
private struct SilentTransport: Transport {
    var enforcesDeadline: Bool { false }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await CountWatch().wait(for: 1)
        return Response(status: .ok)
    }
}
