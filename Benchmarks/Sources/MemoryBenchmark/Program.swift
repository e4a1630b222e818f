// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CAllocationCount
internal import Foundation
internal import Harness

/// The program: `memory --help` says what it does.
@main
enum Program {
    static func main() async {
        exit(await run(Array(CommandLine.arguments.dropFirst())))
    }

    /// Runs off the main thread, whose queue would add a hop to every suspension that is measured.
    @concurrent
    private static func run(_ words: [String]) async -> Int32 {
        do {
            let options = try CommandOptions(parsing: words, numberOptions: ["rounds", "entries", "hits"])
            if options.wantsHelp {
                print(Usage.text, terminator: "")
                return 0
            }
            try options.check(cases: Usage.cases, subjects: Usage.subjects)
            return try await measure(options)
        } catch let misuse as CommandOptions.Misuse {
            say("\(misuse)")
            return CommandOptions.Misuse.exitStatus
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func measure(_ options: CommandOptions) async throws -> Int32 {
        let watch = Stopwatch()
        holdfast_count_allocations(1)
        let population = Population(entries: options.numbers["entries"] ?? 100_000)
        var subjects: [any Subject] = []
        if options.includes(subject: "holdfast") { subjects.append(try await HoldfastSubject(population)) }
        if options.includes(subject: "dictionary") { subjects.append(DictionarySubject(population)) }
        var turns = Turns(
            population: population,
            subjects: subjects,
            cases: HitCase.all.filter { options.includes(case: $0.name) || options.cases == [HitCase.allocations] },
            hits: max(1, options.numbers["hits"] ?? (options.isQuick ? 200_000 : 1_000_000))
        )
        try await turns.run(rounds: max(1, options.numbers["rounds"] ?? (options.isQuick ? 7 : 9)))
        let report = turns.report(options)
        let text = options.wantsJSON ? report.json + "\n" : report.table(comparedWith: ["dictionary"])
        FileHandle.standardOutput.write(Data(text.utf8))
        if options.wantsJSON { report.notes.forEach { say("note: \($0)") } }
        for finding in turns.findings { say(finding) }
        say("\(Int(watch.seconds.rounded())) seconds")
        return turns.findings.isEmpty ? 0 : 1
    }

    /// Words for people, apart from the figures.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("memory: \(text)\n".utf8))
    }

    /// Blocks of memory allocated so far; nil where they are not counted.
    static var allocations: Int? {
        let count = holdfast_allocation_count()
        return count < 0 ? nil : count
    }
}
