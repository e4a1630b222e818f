// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSimulation
import Testing

@Test func retriesDoNoHarm() async throws {
    var rules = RetryRules.default
    rules.maxAttempts = 5
    // A tenth of the fleet and of the server: a few seconds instead of a minute in a debug build.
    let outage = try await Storm(.outage.scaled(to: 0.1)).run(rules).figures
    #expect((outage.loadInFault ?? 0) < 1.2)
    #expect(try await Storm(.slow.scaled(to: 0.1)).run(rules).figures.recovers == true)
}

/// The code of docs/measuring/measuring-retries.md; its test stands above as the page has it.
@Suite("The page on measuring retries", .timeLimit(.minutes(20)))
struct MeasuringRetriesPageTests {
    @Test("A custom retrier")
    func ownRetrier() async throws {
        let storm = Storm(.brownout(30).scaled(to: 0.1))
        let reports = try await storm.run { process, seed in MyRetrierFactory(seed: seed) }
        #expect(reports.figures.stranded == 0)
    }
}
