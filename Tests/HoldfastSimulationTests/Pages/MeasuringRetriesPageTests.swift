// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastSimulation
import Testing

@Test func retriesDoNoHarm() async throws {
    var rules = RetryRules.default
    rules.maxAttempts = 5
    let outage = try await Storm(.outage).run(rules).figures
    #expect((outage.loadInFault ?? 0) < 1.2)
    #expect(try await Storm(.slow).run(rules).figures.recovers == true)
}

/// The code of docs/measuring/measuring-retries.md; its test stands above as the page has it.
@Suite("The page on measuring retries", .timeLimit(.minutes(20)))
struct MeasuringRetriesPageTests {
    @Test("A custom retrier")
    func ownRetrier() async throws {
        let reports = try await Storm(.brownout(30)).run { process, seed in MyRetrierFactory(seed: seed) }
        #expect(reports.figures.stranded == 0)
    }
}
