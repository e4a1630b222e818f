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

@Suite("RETRY §3.6.7: waiting calls are retried together", .timeLimit(.minutes(20)))
struct SharedScheduleTests {
    let factory = WatchedFactory { $0.waits(.seconds(10)) }

    /// A bench whose origin fails `failures` times.
    func bench(_ failures: Int) -> FetchBench {
        let bench = FetchBench(
            GatedOrigin { _, number in
                if number <= failures { throw FetchDeadlineTests.dead }
                return .answer(200, cacheable, "\(number)")
            },
            retrierFactory: factory
        )
        bench.origin.open(100)
        return bench
    }

    /// 20 calls in the first backoff of their one exchange.
    func resting(_ bench: FetchBench) async throws -> [Task<CacheBench.Answer, any Error>] {
        let calls = bench.calls(20)
        await bench.waitForReaders(20)
        try await bench.clock.waitForSleeps(1)
        return calls
    }

    @Test("§3.6.7, E12: one retrier, one counter of attempts, one wait for each retry")
    func oneSchedule() async throws {
        let bench = bench(2)
        let calls = try await resting(bench)
        bench.clock.advance(by: .seconds(10))
        try await bench.clock.waitForSleeps(2)
        bench.clock.advance(by: .seconds(10))
        var sources: [ResponseSource] = []
        for call in calls { sources.append(try await call.value.source) }
        #expect(sources.filter { $0 == .collapsed }.count == 19)
        #expect(sources.contains(.network(attempts: 3)))
        #expect(factory.made.count == 1)
        #expect(factory.questions.map(\.attempt) == [1, 2])
        #expect(bench.clock.waits == [.seconds(10), .seconds(10)])
        #expect(bench.sends == 3)
        let url = try #require(URLRequest.get().url)
        let status = try #require(factory.governor?.status(of: url, now: bench.clock.now))
        #expect(status.counts.calls == 1 && status.counts.retries == 2)
    }

    @Test("§3.6.7: a call that arrives during the backoff joins it and does not reset it")
    func joins() async throws {
        let bench = bench(1)
        let calls = try await resting(bench)
        bench.clock.advance(by: .seconds(9))
        let late = bench.call()
        await bench.waitForReaders(21)
        bench.clock.advance(by: .seconds(1))
        #expect(try await late.value == .collapsed("2"))
        for call in calls { #expect(try await call.value.body == "2") }
        #expect(factory.made.count == 1 && factory.questions.count == 1)
        #expect(bench.clock.waits == [.seconds(10)])
    }

    @Test("§3.6.7: each call keeps its own deadline, and leaves during the backoff when it passes")
    func ownDeadlines() async throws {
        let bench = bench(1)
        let calls = try await resting(bench)
        let early = bench.call(.get(), FetchDeadlineTests.options(5))
        await bench.waitForReaders(21)
        try await bench.clock.waitForSleeps(2)
        bench.clock.advance(by: .seconds(5))
        #expect(await FetchDeadlineTests.code(early) == .deadlineExceeded)
        bench.clock.advance(by: .seconds(5))
        for call in calls { #expect(try await call.value.body == "2") }
        #expect(bench.sends == 2)
    }

    @Test("§3.6.7, E10: cancelling one cancels nothing; the last one to leave ends the exchange and its sleep")
    func cancelling() async throws {
        let bench = bench(1)
        let calls = try await resting(bench)
        for call in calls.dropLast() {
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
        }
        #expect(bench.clock.sleeperCount == 1)
        calls[19].cancel()
        await #expect(throws: CancellationError.self) { try await calls[19].value }
        await bench.waitForQuiet()
        #expect(bench.clock.sleeperCount == 0)
        #expect(bench.sends == 1)
    }

    @Test(
        "§3.6.7, complaint 6 of 12: waiting calls get the failure with its attempts, and later calls do not"
    )
    func failsThosePresent() async throws {
        let bench = bench(3)
        let calls = try await resting(bench)
        for wait in 2...3 {
            bench.clock.advance(by: .seconds(10))
            if wait < 3 { try await bench.clock.waitForSleeps(wait) }
        }
        for call in calls {
            await #expect {
                _ = try await call.value
            } throws: { error in
                let error = error as? ServiceError
                return error?.code == .connectionLost && error?.attempts.map(\.number) == [1, 2, 3]
            }
        }
        #expect(bench.sends == 3)
        #expect(bench.cache.store.statistics.entryCount == 0)
        #expect(try await bench.load() == .network("4"))
    }
}
