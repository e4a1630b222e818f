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

@Suite("RETRY §1 rows 31 and 46: resumes use the retry budget", .timeLimit(.minutes(20)))
struct ResumeBudgetTests {
    let clock = ManualClock(autoAdvances: true)
    let governor: RetryGovernor

    init() {
        var rules = RetryRules(backoff: Backoff(jitter: .none))
        rules.budget = .tokens(capacity: 3, transient: 1, timeout: 1, throttling: 1, reward: 1)
        governor = RetryGovernor(rules)
    }

    private var account: RetryAccount { governor.account(for: .get(), now: clock.now) }
    private var balance: Int { account.status(now: clock.now).balance }

    private func read(_ origin: BreakingOrigin) async throws -> Int {
        let context = CallContext(clock: clock)
        let response = try await ResumingTransport(origin, governor: governor)
            .send(.get(), body: .none, context: context)
        return try await response.body.collect().count
    }

    @Test("A resume that brings bytes returns its token; one that brings none keeps it")
    func conserved() async throws {
        let breaks: [BreakingOrigin.Course] = [.breaks(after: 10), .breaks(after: 10), .breaks(after: 10), .whole]
        #expect(try await read(BreakingOrigin(breaks)) == 100)
        #expect(balance == 3)
        #expect(account.status(now: clock.now).counts.retries == 3)
        let barren: [BreakingOrigin.Course] = [.breaks(after: 10), .breaks(after: 0), .fails(.connect), .whole]
        #expect(try await read(BreakingOrigin(barren)) == 100)
        #expect(balance == 1)
        #expect(account.status(now: clock.now).counts.failedAttempts == 2)
    }

    @Test("A proper server response returns the token, trouble keeps it")
    func refused() async throws {
        for (status, left) in [(200, 3), (416, 3), (503, 2)] as [(Int, Int)] {
            let governor = RetryGovernor(governor.rules)
            var fields = HeaderFields()
            if status == 503 { fields[.retryAfter] = "9" }
            let answer = Response(status: StatusCode(rawValue: status), fields: fields)
            let origin = BreakingOrigin([.breaks(after: 10), .answers(answer)])
            let response = try await ResumingTransport(origin, governor: governor)
                .send(.get(), body: .none, context: CallContext(clock: clock))
            await #expect(throws: ServiceError.self) { try await response.body.collect() }
            let account = governor.account(for: .get(), now: clock.now)
            #expect(account.status(now: clock.now).balance == left, "\(status)")
        }
    }

    @Test("Complaint 8 of 12: without budget nothing is resumed, and the original failure is thrown")
    func spent() async throws {
        for _ in 0..<3 { _ = account.granted(now: clock.now) }
        let origin = BreakingOrigin([.breaks(after: 10)])
        await #expect(throws: ServiceError.self) { try await read(origin) }
        #expect(origin.requests.count == 1)
        #expect(clock.waits.isEmpty)
    }

    @Test("RETRY §3.2: nothing is resumed while the origin's gate is closed, or if it closes meanwhile")
    func gate() async throws {
        account.close(asked: .seconds(10), now: clock.now)
        let origin = BreakingOrigin([.breaks(after: 10)])
        await #expect(throws: ServiceError.self) { try await read(origin) }
        #expect(origin.requests.count == 1)
        #expect(balance == 3)
        #expect(clock.waits.isEmpty)
        let manual = ManualClock()
        let governor = RetryGovernor(governor.rules)
        let account = governor.account(for: .get(), now: manual.now)
        let other = BreakingOrigin([.breaks(after: 10)])
        let response = try await ResumingTransport(other, governor: governor)
            .send(.get(), body: .none, context: CallContext(clock: manual))
        let reader = Task { try await response.body.collect() }
        try await manual.waitForSleeps(1)
        #expect(account.status(now: manual.now).balance == 2)
        account.close(asked: .seconds(10), now: manual.now)
        manual.advance(by: .seconds(1))
        await #expect(throws: ServiceError.self) { try await reader.value }
        #expect(other.requests.count == 1)
        #expect(account.status(now: manual.now).balance == 3)
    }

    @Test("Observers are told where a body was resumed")
    func observed() async throws {
        let recorder = EventRecorder()
        var rules = governor.rules
        rules.resumesBodies = true
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.observers = [recorder]
        let origin = BreakingOrigin([.breaks(after: 10), .breaks(after: 20)])
        let pipeline = Pipeline(
            transport: origin,
            retrierFactory: .backoff(rules),
            configuration: configuration
        )
        #expect(try await pipeline.send(.get()).body.collect().count == 100)
        let resumed = recorder.events.filter { $0.name == .bodyResumed }
        #expect(resumed.map(\.bytes) == [10, 30])
        #expect(resumed.map(\.delay) == [.milliseconds(100), .milliseconds(200)])
        #expect(recorder.events.filter { $0.name == .bodyEnded }.map(\.bytes) == [100])
    }
}
