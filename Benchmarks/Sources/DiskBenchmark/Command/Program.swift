// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness

/// The program; see `disk --help`.
@main
enum Program {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        exit(await run(words))
    }

    /// Does not run on the main thread, whose queue would add a hop to every measured suspension.
    @concurrent
    private static func run(_ words: [String]) async -> Int32 {
        do {
            if let child = OpenChild(words) {
                try await child.run()
                return 0
            }
            let options = try CommandOptions(parsing: words, numberOptions: Plan.numberOptions)
            if options.wantsHelp {
                print(Usage.text, terminator: "")
                return 0
            }
            if let missing = SubjectKind.missing, options.subjects.contains("lmdb") {
                throw CommandOptions.Misuse(missing)
            }
            try options.check(cases: Usage.cases, subjects: SubjectKind.all.map(\.name))
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
        let plan = Plan(isQuick: options.isQuick, numbers: options.numbers)
        let scratch = try ScratchDirectory(in: options.directory, prefix: "holdfast-disk")
        let interruption = Interruption { scratch.remove() }
        defer {
            interruption.end()
            scratch.remove()
        }
        if scratch.isInMemory {
            say(
                "\(scratch.path) is in memory (tmpfs), so the figures say little about a disk. Choose another --directory."
            )
        }
        var report = Report()
        if let missing = SubjectKind.missing { report.note(missing) }
        var findings: [String] = []
        let speed = SpeedCases(plan: plan, options: options, scratch: scratch, watch: watch)
        // The largest bodies come last, because the disk is still busy writing them afterwards, which would disturb the other
        // cases.
        for size in plan.sizes.dropLast() { findings += try await speed.run(size, into: &report) }
        if options.includes(case: Usage.reclaimCase), speed.hasTime(Usage.reclaimCase, &report) {
            findings += try await ReclaimCase(plan: plan, options: options, scratch: scratch).run(into: &report)
        }
        if Usage.openCases.contains(where: { options.includes(case: $0) }), options.includes(subject: "holdfast"),
            speed.hasTime("open", &report)
        {
            // In a quick run the elapsed time limits the fill, because opening takes about twice as long as the fill.
            let left = options.isQuick ? min(plan.fillSeconds, max(1, 24 - watch.seconds)) : plan.fillSeconds
            findings += try await OpenCase(plan: plan, scratch: scratch, fillSeconds: left).run(into: &report)
        }
        for size in plan.sizes.suffix(1) { findings += try await speed.run(size, into: &report) }
        let text = options.wantsJSON ? report.json + "\n" : report.table(comparedWith: ["raw", "sqlite"])
        FileHandle.standardOutput.write(Data(text.utf8))
        if options.wantsJSON { report.notes.forEach { say("note: \($0)") } }
        for finding in findings { say(finding) }
        say("\(Int(watch.seconds.rounded())) seconds")
        return findings.isEmpty ? 0 : 1
    }

    /// A message for people, separate from the figures.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("disk: \(text)\n".utf8))
    }
}
