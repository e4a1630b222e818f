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

@Suite("Waiting for a fetch: retries, deadlines and leaving (RETRY §3.6)", .timeLimit(.minutes(20)))
struct FetchDeadlineTests {
    static let dead = ServiceError(.connectionLost, "scripted", progress: .headSent)

    static func options(_ seconds: Int) -> CallOptions {
        var options = CallOptions()
        options.timeout = .seconds(seconds)
        return options
    }

    static func code(_ call: Task<CacheBench.Answer, any Error>) async -> ServiceError.Code? {
        do {
            _ = try await call.value
            return nil
        } catch {
            return (error as? ServiceError)?.code
        }
    }

    @Test(
        "50 callers of a dead origin cause one retry schedule, and all get the failure or a stale response",
        arguments: [true, false]
    )
    func deadOrigin(_ hasStale: Bool) async throws {
        let bench = FetchBench(
            GatedOrigin { _, number in
                if hasStale, number == 1 { return .answer(200, ["Cache-Control": "max-age=1"], "one") }
                throw Self.dead
            },
            retrierFactory: .exponentialBinary(maxBackoff: .seconds(4))
        )
        bench.origin.open(100)
        if hasStale { _ = try await bench.load() }
        bench.clock.advance(by: .seconds(5))
        let before = bench.sends
        let calls = bench.calls(50)
        await bench.waitForReaders(50)
        for wait in 0..<2 {
            try await bench.clock.waitForSleeps(wait + 1)
            bench.clock.advance(by: .seconds(1 << wait))
        }
        for call in calls {
            if hasStale {
                #expect(try await call.value == .stale("one"))
            } else {
                #expect(await Self.code(call) == .connectionLost)
            }
        }
        #expect(bench.sends - before == 3)
        #expect(bench.clock.waits == [.seconds(1), .seconds(2)])
    }

    @Test("A caller that arrives during the backoff joins and does not reset it")
    func joinsDuringBackoff() async throws {
        let bench = FetchBench(
            GatedOrigin { _, number in
                if number < 2 { throw Self.dead }
                return .answer(200, cacheable, "one")
            },
            retrierFactory: .exponentialBinary(maxBackoff: .seconds(4))
        )
        bench.origin.open(9)
        let first = bench.call()
        try await bench.clock.waitForSleeps(1)
        bench.clock.advance(by: .milliseconds(900))
        let second = bench.call()
        await bench.waitForReaders(2)
        bench.clock.advance(by: .milliseconds(100))
        #expect(try await first.value == .network("one").after(2))
        #expect(try await second.value == .collapsed("one"))
        #expect(bench.clock.waits == [.seconds(1)])
    }

    @Test(
        "Each caller keeps its own deadline: the early one leaves, the others get the response",
        arguments: [true, false]
    )
    func earlyDeadline(_ hasStale: Bool) async throws {
        let bench = FetchBench(
            GatedOrigin { _, number in
                .answer(200, ["Cache-Control": "max-age=1"], "\(number)")
            }
        )
        if hasStale {
            bench.origin.open()
            _ = try await bench.load()
            bench.clock.advance(by: .seconds(5))
        }
        let number = bench.sends + 1
        let late = bench.call(.get(), Self.options(100))
        await bench.waitForReaders(1)
        let early = bench.call(.get(), Self.options(10))
        let patient = bench.call()
        await bench.waitForReaders(3)
        try await bench.clock.waitForSleeps(2)
        bench.clock.advance(by: .seconds(10))
        if hasStale {
            #expect(try await early.value == .stale("1"))
        } else {
            #expect(await Self.code(early) == .deadlineExceeded)
        }
        bench.origin.open()
        #expect(try await late.value == .network("\(number)"))
        #expect(try await patient.value == .collapsed("\(number)"))
    }

    @Test("The first caller's deadline fails nobody with more time, and costs one more request, not one for each")
    func firstDeadline() async throws {
        let bench = FetchBench(GatedOrigin { _, number in .answer(200, cacheable, "\(number)") })
        let first = bench.call(.get(), Self.options(10))
        try await bench.origin.asked.wait(for: 1)
        let others = bench.calls(20, .get(), Self.options(100))
        await bench.waitForReaders(21)
        await until { bench.clock.sleeperCount >= 2 }
        bench.clock.advance(by: .seconds(10))
        #expect(await Self.code(first) == .deadlineExceeded)
        try await bench.origin.asked.wait(for: 2)
        await bench.waitForReaders(20)
        bench.origin.open(3)
        for call in others { #expect(try await call.value.body == "2") }
        #expect(bench.sends == 2)
    }

    @Test("An attempt that exceeds its own timeout fails all callers, with or without deadlines")
    func attemptTimeout() async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer() }) { $0.attemptTimeout = .seconds(10) }
        let first = bench.call(.get(), Self.options(100))
        await bench.waitForReaders(1)
        let others = bench.calls(20, .get(), Self.options(101))
        await bench.waitForReaders(21)
        await until { bench.clock.sleeperCount >= 2 }
        bench.clock.advance(by: .seconds(10))
        for call in [first] + others { #expect(await Self.code(call) == .timeout) }
        #expect(bench.sends == 1)
    }

    @Test("The shared deadline is extended for a caller with more time, and still applies to the others")
    func deadlineMovesOn() async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer() })
        let early = bench.calls(5, .get(), Self.options(10))
        await bench.waitForReaders(5)
        let late = bench.call()
        await bench.waitForReaders(6)
        await until { bench.clock.sleeperCount >= 6 }
        bench.clock.advance(by: .seconds(10))
        for call in early { #expect(await Self.code(call) == .deadlineExceeded) }
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
        await bench.waitForQuiet()
    }

    /// A call without a limit that has joined the waiting exchange of `first`, which has ended by its own limit of a second.
    ///
    /// - Parameters:
    ///   - readers: how many calls are in fetches once it has joined.
    ///   - sleepers: how many timers run by then, that of `first` included.
    private func joined(
        _ first: Task<CacheBench.Answer, any Error>,
        in bench: FetchBench,
        readers: Int = 2,
        sleepers: Int
    ) async throws -> Task<CacheBench.Answer, any Error> {
        let late = bench.call()
        await bench.waitForReaders(readers)
        await until { bench.clock.sleeperCount >= sleepers }
        bench.clock.advance(by: .seconds(1))
        #expect(await Self.code(first) == .deadlineExceeded)
        for _ in 0..<100 { await Task.yield() }
        try #require(bench.cache.fetches.readers == readers - 1)
        return late
    }

    @Test("A caller that joins while the exchange waits for a credential has its own deadline, and the refresh goes on")
    func joinsDuringRefresh() async throws {
        let (refreshes, gate) = (CountWatch(), CountWatch())
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") }) { configuration in
            configuration.authorization = .bearer(token: nil, for: ["http://origin.example"], principal: "me") { _ in
                refreshes.increment()
                try await gate.wait(for: 1)
                return "t"
            }
        }
        bench.origin.open()
        let first = bench.call(.get(), Self.options(1))
        try await refreshes.wait(for: 1)
        // The timers of the refresh, of the wait for it, and of the first caller.
        let late = try await joined(first, in: bench, sleepers: 3)
        gate.increment()
        #expect(try await late.value == .collapsed("one"))
        #expect(refreshes.count == 1 && bench.sends == 1)
    }

    @Test("A caller that joins while the exchange waits for the network has its own deadline")
    func joinsOffline() async throws {
        let network = ManualConnectivity(isOnline: false)
        var rules = RetryRules(maxAttempts: 1)
        rules.waitsForConnectivity = true
        let bench = FetchBench(
            GatedOrigin { _, number in
                if number == 1 { throw ServiceError(.offline, "scripted", progress: .notSent) }
                return .answer(200, cacheable, "one")
            },
            retrierFactory: .backoff(rules, connectivity: network)
        )
        bench.origin.open(2)
        let first = bench.call(.get(), Self.options(1))
        try await network.waitForWaits(1)
        let late = try await joined(first, in: bench, sleepers: 2)
        network.goOnline()
        await until { bench.clock.sleeperCount > 0 }
        bench.clock.advance(by: .seconds(1))
        #expect(try await late.value == .collapsed("one"))
        #expect(bench.sends == 2)
    }

    @Test("A caller that joins while the exchange waits for the budget has its own deadline")
    func joinsInQueue() async throws {
        let recorder = EventRecorder()
        let held = CountWatch()
        let tries = Mutex<[String: Int]>([:])
        let bench = FetchBench(
            GatedOrigin { request, _ in
                let path = request.url?.path ?? ""
                let isFirst = tries.withLock { tries in
                    tries[path, default: 0] += 1
                    return tries[path] == 1
                }
                if isFirst { throw Self.dead }
                if path != "/a" { try await held.wait(for: 1) }
                return .answer(200, cacheable, path)
            },
            retrierFactory: .backoff(RetryRules(backoff: Backoff(jitter: .none)))
        ) { configuration in
            configuration.observers = [recorder]
        }
        func backoffs() -> Int { bench.clock.waits.filter { $0 == .milliseconds(100) }.count }
        bench.origin.open(9)
        // At first an origin has two places for retries.
        let others = ["b", "c"].map { bench.call(.get("http://origin.example/\($0)")) }
        await until { backoffs() == 2 }
        bench.clock.advance(by: .milliseconds(100))
        try await bench.origin.asked.wait(for: 4)
        let first = bench.call(.get(), Self.options(1))
        await until { backoffs() == 3 }
        bench.clock.advance(by: .milliseconds(100))
        await until { !recorder.events(.budgetAwaited).isEmpty }
        let late = try await joined(first, in: bench, readers: 4, sleepers: 2)
        held.increment()
        for (call, path) in zip(others, ["/b", "/c"]) { #expect(try await call.value.body == path) }
        #expect(try await late.value == .collapsed("/a"))
    }

    @Test("The last reader to leave cancels the exchange, and no earlier one does")
    func lastLeaves() async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer() })
        let calls = bench.calls(5)
        await bench.waitForReaders(5)
        for call in calls.dropLast() {
            call.cancel()
            _ = try? await call.value
        }
        #expect(bench.origin.cancelled.count == 0)
        calls[4].cancel()
        await #expect(throws: CancellationError.self) { try await calls[4].value }
        try await bench.origin.cancelled.wait(for: 1)
        await bench.waitForQuiet()
        #expect(bench.cache.statistics.misses == 5)
    }

    @Test("The last reader to leave ends the backoff, and a later call starts anew")
    func lastLeavesBackoff() async throws {
        let bench = FetchBench(
            GatedOrigin { _, number in
                if number == 1 { throw Self.dead }
                return .answer(200, cacheable, "two")
            },
            retrierFactory: .exponentialBinary(maxBackoff: .seconds(4))
        )
        bench.origin.open(9)
        let calls = bench.calls(3)
        await bench.waitForReaders(3)
        try await bench.clock.waitForSleeps(1)
        for call in calls { call.cancel() }
        for call in calls { await #expect(throws: CancellationError.self) { try await call.value } }
        await bench.waitForQuiet()
        #expect(bench.clock.sleeperCount == 0)
        #expect(bench.sends == 1)
        #expect(try await bench.load() == .network("two"))
    }
}

extension CacheBench.Answer {
    func after(_ attempts: Int) -> Self {
        .init(status: status, body: body, source: .network(attempts: attempts))
    }
}
