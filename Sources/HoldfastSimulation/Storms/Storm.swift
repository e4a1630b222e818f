// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Runs retriers through a scenario: real pipelines, a simulated server and fleet, virtual time.
///
/// Nothing waits and nothing is measured by a real clock, so that a run takes as long as the processor needs. The same
/// seed gives the same events on every machine, as long as all draws of the retriers come from the seed they are given
/// and they begin no unstructured tasks outside of `PipelineConfiguration.executor`.
///
/// ```swift
/// let reports = try await Storm(.outage).run(.default)
/// #expect(reports.figures.loadInFault <= 1.2)
/// ```
public struct Storm: Sendable {
    /// What is run.
    public let scenario: StormScenario

    /// A storm by a scenario.
    public init(_ scenario: StormScenario) {
        self.scenario = scenario
    }

    /// Runs the retriers of `makeFactory` once for each seed of the scenario, one after the other, each on a thread of its
    /// own.
    ///
    /// - Parameter makeFactory: makes what a client process keeps for its life. Called for each process before the run;
    ///   `process` counts from 0, and `seed` is for its draws.
    /// - Returns: a report for each seed, in their order.
    /// - Throws: ``StormScenarioError`` where the scenario makes no sense. Cancellation is not heard within a run.
    public func run(
        _ makeFactory: @escaping @Sendable (_ process: Int, _ seed: UInt64) -> any RetrierFactory
    ) async throws -> [StormReport] {
        try scenario.validate()
        var reports: [StormReport] = []
        for seed in scenario.seeds {
            try Task.checkCancellation()
            let run = StormRun(scenario, seed: seed, makeFactory: makeFactory)
            reports.append(await run.report())
        }
        return reports
    }

    /// Runs rules, which are given the scenario's attempts where it has some and they have more than one.
    ///
    /// - Returns: a report for each seed, in their order.
    /// - Throws: ``StormScenarioError`` or `RetryRulesError` where scenario or rules make no sense.
    public func run(_ rules: RetryRules) async throws -> [StormReport] {
        var rules = rules
        if let attempts = scenario.attempts, rules.maxAttempts > 1 { rules.maxAttempts = attempts }
        try rules.validate()
        let given = rules
        return try await run { _, seed in .backoff(given, seed: seed) }
    }

    /// Runs the rules of a subject.
    ///
    /// - Returns: a report for each seed, in their order.
    /// - Throws: as the other forms do.
    public func run(_ subject: StormSubject) async throws -> [StormReport] {
        try await run(subject.rules)
    }
}
