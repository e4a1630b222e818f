// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The cases of one mode, run one after the other, with what came of each.
struct ConformanceRun: Sendable {
    struct Outcome: Sendable {
        let test: CacheCase
        let verdict: Verdict
        let transcript: [String]
    }

    let label: String
    let outcomes: [Outcome]

    /// Runs every case of a mode, in the file's order.
    ///
    /// - Parameters:
    ///   - file: the cases.
    ///   - mode: which of them, and the cache's mode.
    ///   - hasCache: false to run them without a cache in between.
    ///   - only: the ids to run, whatever they build upon; nil for all.
    ///   - way: how the label names the way the requests take; "" for a pipeline of this process.
    ///   - makeCourier: what carries the requests of each case.
    init(
        _ file: CaseFile,
        mode: ConformanceMode,
        hasCache: Bool = true,
        only: Set<String>? = nil,
        way: String = "",
        by makeCourier: CourierFactory = { PipelineCourier($0, clock: $1, mode: $2) }
    ) async throws {
        label = (hasCache ? mode.rawValue : "\(mode.rawValue) without a cache") + way
        var verdicts: [String: Verdict] = [:]
        var outcomes: [Outcome] = []
        for test in file.cases where test.belongs(to: mode) && only?.contains(test.id) != false {
            let result: (verdict: Verdict, transcript: [String])
            let missing = test.dependencies.first { verdicts[$0]?.isPass != true }
            if let missing, only == nil {
                result = (.dependencyFailed(missing), [])
            } else {
                result = try await CaseRun(test, mode: hasCache ? mode : nil, by: makeCourier).run()
            }
            verdicts[test.id] = result.verdict
            outcomes.append(Outcome(test: test, verdict: result.verdict, transcript: result.transcript))
        }
        self.outcomes = outcomes
    }

    /// How many cases of a kind passed, and how many there are.
    func tally(_ kind: CacheCase.Kind) -> (passed: Int, all: Int) {
        let all = outcomes.filter { $0.test.kind == kind }
        return (all.count { $0.verdict.isPass }, all.count)
    }

    /// How many cases were not run because another had not passed.
    var dependencyFailures: Int {
        outcomes.count {
            if case .dependencyFailed = $0.verdict { true } else { false }
        }
    }

    /// The one line that sums a run up.
    var summary: String {
        let parts = CacheCase.Kind.allCases.map { kind in
            let tally = tally(kind)
            return "\(kind.rawValue) \(tally.passed)/\(tally.all)"
        }
        return "\(label) \(parts.joined(separator: " "))"
    }

    /// The required and optimal cases that did not pass.
    var misses: [Outcome] {
        outcomes.filter { $0.test.kind != .check && !$0.verdict.isPass }
    }

    /// Each case that did not pass, with its reason and what went over the wire.
    var report: String {
        outcomes.filter { !$0.verdict.isPass }.map { outcome in
            ([
                "\(label) \(outcome.test.kind.rawValue) \(outcome.test.id): \(outcome.verdict.text)",
                "  \(outcome.test.name)",
            ] + outcome.transcript.map { "  \($0)" }).joined(separator: "\n")
        }.joined(separator: "\n")
    }
}
