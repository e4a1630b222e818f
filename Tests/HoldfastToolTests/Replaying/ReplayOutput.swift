// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import HoldfastTestKit

    @testable import HoldfastTool

    /// What `--json` prints, as a reader of it sees it; the keys are the tool's promise.
    struct ReplayOutput: Decodable {
        struct Figure: Decodable {
            let `case`: String
            let subject: String
            let value: Double
            let unit: String
        }

        let results: [Figure]
        let assumptions: [String]
        let malformed: [String]

        /// Replays a file with `--json` and more words.
        init(_ words: [String]) async throws {
            let collected = RecordedConsole()
            let command = try ReplayCommand.parse(words + ["--json"])
            try await command.run(on: collected.console)
            self = try JSONDecoder().decode(ReplayOutput.self, from: Data(collected.output.utf8))
        }

        /// The figure of a unit in a case that ends so; nil where there is none.
        func value(_ unit: String, _ ending: String, _ subject: String) -> Double? {
            results.first { $0.unit == unit && $0.case.hasSuffix(ending) && $0.subject == subject }?.value
        }

        func count(_ unit: String) -> Double? {
            results.first { $0.unit == unit && $0.subject == "input" }?.value
        }
    }
#endif
