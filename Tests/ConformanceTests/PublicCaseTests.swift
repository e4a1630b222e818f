// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// The public cases, run natively; skipped where the file is not to be had.
@Suite("Public HTTP cache cases", .timeLimit(.minutes(20)))
struct PublicCaseTests {
    @Test(
        "Every required and optimal case passes, except the known failures",
        .enabled(if: CaseFile.publicURL != nil, "skipped: there is no file of public cases"),
        arguments: ConformanceMode.allCases
    )
    func conformance(_ mode: ConformanceMode) async throws {
        let file = try CaseFile(contentsOf: try #require(CaseFile.publicURL))
        let run = try await ConformanceRun(file, mode: mode, only: CaseFile.only)
        announce(run)
        #expect(!run.outcomes.isEmpty || CaseFile.only != nil)
        for miss in run.misses where KnownMisses.reasons[miss.test.id] == nil {
            Issue.record("\(mode.rawValue) \(miss.test.kind.rawValue) \(miss.test.id): \(miss.verdict.text)")
        }
    }

    @Test(
        "Without a cache almost no case passes, and most fail because of a case that they depend on",
        .enabled(if: CaseFile.publicURL != nil, "skipped: there is no file of public cases"),
        .enabled(if: CaseFile.only == nil, "skipped: only some cases were asked for"),
        arguments: ConformanceMode.allCases
    )
    func floor(_ mode: ConformanceMode) async throws {
        let file = try CaseFile(contentsOf: try #require(CaseFile.publicURL))
        let run = try await ConformanceRun(file, mode: mode, hasCache: false)
        announce(run)
        #expect(run.tally(.optimal).passed == 0)
        #expect(run.tally(.required).passed * 5 < run.tally(.required).all)
        #expect(run.dependencyFailures * 2 > run.outcomes.count)
    }

    private func announce(_ run: ConformanceRun) {
        print(run.summary)
        if CaseFile.isVerbose { print(run.report) }
    }
}
