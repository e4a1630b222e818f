// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// The cases of this project, in the same form; every clone runs them.
@Suite("Cases of our own", .timeLimit(.minutes(20)))
struct OwnCaseTests {
    @Test("Every case passes", arguments: ConformanceMode.allCases)
    func conformance(_ mode: ConformanceMode) async throws {
        let run = try await ConformanceRun(CaseFile(contentsOf: CaseFile.ownURLs), mode: mode, only: CaseFile.only)
        print("own \(run.summary)")
        if CaseFile.isVerbose { print(run.report) }
        #expect(run.outcomes.count > 500 || CaseFile.only != nil)
        for outcome in run.outcomes where !outcome.verdict.isPass {
            Issue.record("\(mode.rawValue) \(outcome.test.id): \(outcome.verdict.text)")
        }
    }

    @Test("No case passes without a cache", arguments: ConformanceMode.allCases)
    func floor(_ mode: ConformanceMode) async throws {
        let run = try await ConformanceRun(CaseFile(contentsOf: CaseFile.ownURLs), mode: mode, hasCache: false)
        #expect(run.outcomes.allSatisfy { !$0.verdict.isPass })
    }
}
