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

@Suite("Stale responses after a wait", .timeLimit(.minutes(20)))
struct StaleAfterPatienceTests {
    @Test(
        "serveStaleAfter: a stale response after the wait, and the later response is stored",
        arguments: [true, false]
    )
    func patience(_ byCall: Bool) async throws {
        var options = CacheOptions()
        if !byCall { options.serveStaleAfter = .seconds(3) }
        let source = GatedSource([ByteChunk(copying: "new".utf8)])
        let bench = try await StaleAnswerTests.bench(["Cache-Control": "max-age=10"], options: options) { _ in
            .stream(200, cacheable, source, nil)
        }
        var callOptions = CallOptions()
        if byCall { callOptions.cache.serveStaleAfter = .seconds(3) }
        let call = bench.call(.get(), callOptions)
        try await bench.clock.waitForSleeps(1)
        bench.clock.advance(by: .seconds(3))
        #expect(try await call.value == .stale("old"))
        #expect(bench.cache.statistics.reasons[.patience] == 1)
        bench.origin.open()
        source.open(2)
        await bench.waitForQuiet()
        #expect(try await bench.load() == .fresh("new"))
        #expect(bench.sends == 2)
        #expect(bench.cache.statistics.backgroundRevalidations == 1)
    }

    @Test(
        "serveStaleAfter: checkRefresh decides about the later response, whatever the call thinks of the stale one",
        arguments: [true, false],
        [true, false]
    )
    func verdict(_ acceptsStale: Bool, _ acceptsNew: Bool) async throws {
        let bench = try await StaleAnswerTests.bench(["Cache-Control": "max-age=10"]) { number in
            .answer(200, cacheable, number == 1 ? "new" : "again")
        }
        var acceptance = Acceptance { response in
            if response.source == .stale, !acceptsStale { throw Refused(reason: "stale") }
        }
        acceptance.checkRefresh = { _ in if !acceptsNew { throw Refused(reason: "new") } }
        var options = CallOptions()
        options.acceptance = acceptance
        options.cache.serveStaleAfter = .seconds(3)
        let call = bench.call(.get(), options)
        try await bench.clock.waitForSleeps(1)
        bench.clock.advance(by: .seconds(3))
        if acceptsStale {
            #expect(try await call.value == .stale("old"))
        } else {
            // A refused response is requested once more, and that request is held for now.
            try await bench.origin.asked.wait(for: 3)
        }
        bench.origin.open()
        await until { bench.cache.fetches.backgroundCount == 0 }
        #expect(bench.cache.statistics.stored == (acceptsNew ? 2 : 1))
        #expect(bench.cache.statistics.backgroundFailures == (acceptsNew ? 0 : 1))
        bench.origin.open(9)
        if !acceptsStale { #expect(try await call.value.body == "again") }
        await bench.waitForQuiet()
        #expect(try await bench.load().body == (acceptsStale && acceptsNew ? "new" : "again"))
    }

    @Test("serveStaleAfter: at once if the next backoff is longer than the wait")
    func impatientOfBackoff() async throws {
        var options = CacheOptions()
        options.serveStaleAfter = .milliseconds(500)
        let bench = try await StaleAnswerTests.bench(
            ["Cache-Control": "max-age=10"],
            options: options,
            retrierFactory: .exponentialBinary(maxBackoff: .seconds(4))
        ) { number in
            if number == 1 { throw FetchDeadlineTests.dead }
            return .answer(200, cacheable, "new")
        }
        bench.origin.open(9)
        #expect(try await bench.load() == .stale("old"))
        await until { bench.clock.waits.contains(.seconds(1)) }
        bench.clock.advance(by: .seconds(1))
        await bench.waitForQuiet()
        #expect(try await bench.load() == .fresh("new"))
    }

    @Test("serveStaleAfter: background work is bounded; beyond that the exchange ends with its last reader")
    func boundedPatience() async throws {
        var options = CacheOptions()
        options.serveStaleAfter = .zero
        options.maximumBackgroundRevalidations = 1
        let urls = ["http://origin.example/a", "http://origin.example/b"]
        let bench = try await StaleAnswerTests.bench(["Cache-Control": "max-age=10"], options: options, urls: urls) {
            _ in
            .answer(200, cacheable, "new")
        }
        #expect(try await bench.load(.get(urls[0])) == .stale("old"))
        try await bench.origin.asked.wait(for: 3)
        #expect(try await bench.load(.get(urls[1])) == .stale("old"))
        bench.origin.open(9)
        await bench.waitForQuiet()
        #expect(try await bench.load(.get(urls[0])) == .fresh("new"))
        #expect(bench.cache.statistics.backgroundRevalidations == 1)
    }

    @Test("serveStaleAfter: a caller still has the exchange's deadline when another lets it continue")
    func patienceAndDeadline() async throws {
        let bench = try await StaleAnswerTests.bench(
            ["Cache-Control": "max-age=10"],
            retrierFactory: .exponentialBinary(maxBackoff: .seconds(4))
        ) { number in
            if number == 1 { throw FetchDeadlineTests.dead }
            return .answer(200, cacheable, "new")
        }
        bench.origin.open()
        var patient = CallOptions()
        patient.timeout = .seconds(10)
        let reader = bench.call(.get(), patient)
        await until { bench.clock.waits.contains(.seconds(1)) }
        var impatient = CallOptions()
        impatient.cache.serveStaleAfter = .zero
        impatient.timeout = .seconds(5)
        #expect(try await bench.load(.get(), impatient) == .stale("old"))
        // The second attempt has no limit any more, so only the reader's own look at the clock ends its wait.
        bench.clock.advance(by: .seconds(1))
        try await bench.origin.asked.wait(for: 3)
        await until { bench.clock.sleeperCount == 1 }
        bench.clock.advance(by: .seconds(9))
        #expect(try await reader.value == .stale("old"))
        bench.origin.open(9)
        await bench.waitForQuiet()
        #expect(try await bench.load() == .fresh("new"))
    }
}
