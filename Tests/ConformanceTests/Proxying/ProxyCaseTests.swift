// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy && canImport(HoldfastProxy)
    import Foundation
    import Testing

    /// The same cases over real sockets: what the cache does in a process, it does behind the proxy.
    @Suite("Cases through the proxy", .timeLimit(.minutes(20)))
    struct ProxyCaseTests {
        /// What is otherwise by design.
        private static let differences = [
            "own-interim-100": "a proxy sends 100 itself and hands on none (RFC 9110 §15.2.1, PROXY-REQUIREMENTS A9)"
        ]

        /// The first two files; all of them with HOLDFAST_LONG_TESTS=1, which takes a minute.
        private static let ownURLs =
            ProcessInfo.processInfo.environment["HOLDFAST_LONG_TESTS"] == "1"
            ? CaseFile.ownURLs : Array(CaseFile.ownURLs.prefix(2))

        @Test("Every case of our own passes", arguments: ConformanceMode.allCases)
        func own(_ mode: ConformanceMode) async throws {
            let run = try await run(CaseFile(contentsOf: Self.ownURLs), mode)
            for outcome in run.outcomes
            where !outcome.verdict.isPass && Self.differences[outcome.test.id] == nil {
                Issue.record("\(mode.rawValue) \(outcome.test.id): \(outcome.verdict.text)")
            }
        }

        @Test(
            "Every public case that passes in-process also passes through the proxy",
            .enabled(if: CaseFile.publicURL != nil, "skipped: there is no file of public cases"),
            arguments: ConformanceMode.allCases
        )
        func publicCases(_ mode: ConformanceMode) async throws {
            let file = try CaseFile(contentsOf: try #require(CaseFile.publicURL))
            let inside = try await ConformanceRun(file, mode: mode, only: CaseFile.only)
            let run = try await run(file, mode)
            #expect(run.outcomes.map(\.test.id) == inside.outcomes.map(\.test.id))
            for (outcome, expected) in zip(run.outcomes, inside.outcomes)
            where outcome.verdict.isPass != expected.verdict.isPass {
                Issue.record(
                    "\(mode.rawValue) \(outcome.test.id): \(outcome.verdict.text), not \(expected.verdict.text)"
                )
            }
        }

        private func run(_ file: CaseFile, _ mode: ConformanceMode) async throws -> ConformanceRun {
            let run = try await ConformanceRun(file, mode: mode, only: CaseFile.only, way: " through the proxy") {
                try await ProxyCourier($0, clock: $1, mode: $2)
            }
            print(run.summary)
            if CaseFile.isVerbose { print(run.report) }
            return run
        }
    }
#endif
