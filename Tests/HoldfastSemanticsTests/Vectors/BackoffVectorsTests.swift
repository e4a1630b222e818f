// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Groups that no test ran, because they were not read, would let every vector test pass.
@Suite struct BackoffVectorsTests {
    @Test("All groups of the file are read", .enabled(if: VectorFile.isOwn))
    func groupsAreThere() throws {
        let vectors = try #require(VectorFile.backoff)
        #expect(vectors.stateless.count >= 20 && vectors.stateful.count >= 7 && vectors.budgets.count >= 20)
        #expect(vectors.rateLimiter.count == 3 && vectors.hedging.count >= 5 && vectors.analytic.count >= 30)
        let trace = try #require(vectors.budgets.first { $0.id == "aws-standard-2.0" }?.trace)
        #expect(trace.contains { $0.granted == true && $0.available == 495 })
        let schedule = try #require(vectors.hedging.first { $0.id == "grpc-hedging-schedule" })
        #expect(schedule.expected.list("send_times_s") == [0, 0.5, 1, 1.5])
        #expect(schedule.params["none", "hedgingDelay_s"] == 0.5)
    }

    @Test("A group that a file lacks is empty, and an invalid number is absent")
    func missingGroups() throws {
        let text =
            #"{"hedging": [{"id": "x", "params": {"a": null, "b": "c", "d": {"e": 1}}, "expected": {"f": true}}]}"#
        let vectors = try JSONDecoder().decode(BackoffVectors.self, from: Data(text.utf8))
        #expect(vectors.stateless.isEmpty && vectors.budgets.isEmpty)
        let claim = try #require(vectors.hedging.first)
        #expect(claim.params["a", "b", "d"] == nil && claim.params.list("b") == nil)
    }
}
