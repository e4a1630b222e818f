// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastSimulation

/// The scenarios, subjects and output of a run.
struct Plan: Sendable {
    /// The scenarios of the study, or those from the files.
    let scenarios: [StormScenario]
    /// The subjects to run.
    let subjects: [StormSubject]
    /// The path of the plot of the first scenario; nil: no plot.
    let plot: String?
    /// Whether to run the contention study instead of the storms.
    let isContention: Bool
    /// Trials per row of the contention study.
    let trials: Int
    /// The number of concurrent runs.
    let width: Int
    /// No further run begins after this many seconds.
    let seconds: Double

    /// Options besides the common ones.
    static let wordOptions: Set<String> = ["scenario", "seeds", "plot"]
    static let numberOptions: Set<String> = ["jobs", "trials"]
    static let flagOptions: Set<String> = ["contention"]

    /// The names of the scenarios of the study.
    static let scenarioNames = StormScenario.study.map(\.name)

    /// All subjects: the presets, then their peers.
    static let subjects = StormSubject.presets + StormSubject.peers
    static let subjectNames = subjects.map(\.name)

    /// Creates the plan from the options; `read` returns the content of a file.
    init(
        _ options: CommandOptions,
        read: (String) throws -> Data = { try Data(contentsOf: URL(fileURLWithPath: $0)) }
    ) throws {
        if options.directory != nil {
            throw CommandOptions.Misuse("storm writes no files except --plot; leave out --directory.")
        }
        let files = options.words["scenario"] ?? []
        var scenarios = try files.isEmpty ? StormScenario.study : files.map { try Plan.scenario(in: $0, read) }
        try options.check(cases: scenarios.map(\.name), subjects: Plan.subjectNames)
        scenarios = scenarios.filter { options.includes(case: $0.name) }
        if options.isQuick {
            if options.cases.isEmpty, files.isEmpty { scenarios.removeAll { !Plan.quick.contains($0.name) } }
            for index in scenarios.indices { scenarios[index].seeds = Array(scenarios[index].seeds.prefix(1)) }
        }
        if let seeds = try Plan.seeds(options.words["seeds"]) {
            for index in scenarios.indices { scenarios[index].seeds = seeds }
        }
        self.scenarios = scenarios
        subjects = Plan.subjects.filter { options.includes(subject: $0.name) }
        plot = options.words["plot"]?.last
        isContention = options.flags.contains("contention")
        trials = max(1, options.numbers["trials"] ?? (options.isQuick ? 20 : 100))
        seconds = options.isQuick ? 30 : .infinity
        width = max(1, options.numbers["jobs"] ?? ProcessInfo.processInfo.activeProcessorCount)
    }

    /// The most informative cases.
    private static let quick: Set<String> = ["outage", "slow", "brownout-30", "herd"]

    private static func scenario(in path: String, _ read: (String) throws -> Data) throws -> StormScenario {
        let data: Data
        do {
            data = try read(path)
        } catch {
            throw ScenarioFileError(path: path, reason: "cannot read it (\(error))")
        }
        do {
            let scenario = try JSONDecoder().decode(StormScenario.self, from: data)
            try scenario.validate()
            return scenario
        } catch let error as StormScenarioError {
            throw ScenarioFileError(path: path, reason: error.description)
        } catch {
            throw ScenarioFileError(
                path: path,
                reason: "it is not a scenario (\(error)); see the example in docs/measuring/measuring-retries.md"
            )
        }
    }

    private static func seeds(_ words: [String]?) throws(CommandOptions.Misuse) -> [UInt64]? {
        guard let text = words?.joined(separator: ",") else { return nil }
        let seeds = text.split(separator: ",", omittingEmptySubsequences: false).map { UInt64($0) }
        guard !seeds.contains(nil) else {
            throw CommandOptions.Misuse("--seeds needs whole numbers separated by commas, not '\(text)'.")
        }
        return seeds.compactMap { $0 }
    }
}

/// A scenario file that cannot be used, with the reason.
struct ScenarioFileError: Error, CustomStringConvertible {
    /// The file.
    let path: String
    /// What is wrong with it.
    let reason: String

    var description: String { "\(path): \(reason)" }
}
