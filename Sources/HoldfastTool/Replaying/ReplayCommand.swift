// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// `holdfast replay`: what a cache would have hit of recorded requests.
    struct ReplayCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "replay",
            abstract: "Tell from a log what hit rate a cache of which size would have had.",
            discussion: """
                Reads access logs in the common or combined form of Apache and nginx, HAR files of browsers (judged by their header \
                fields, as RFC 9111 has it), or .trace files (12 bytes a request: key in 8, size in 4, little-endian), and replays \
                the requests through caches of several sizes and policies. Packed logs are piped: zcat access.log.*.gz | holdfast \
                replay -

                A hit ratio is that of the requests which a cache looks up: GET, answers that may not be kept included. What had \
                to be assumed is printed with the figures.

                Exit status: 0 done; 1 a file that cannot be read, or holds no requests; 64 a wrong command line; 130 interrupted.
                """
        )

        @Argument(
            help: ArgumentHelp("Logs of one format, in the order of time; - is standard input.", valueName: "file")
        )
        var files: [String]

        @Option(help: "auto (by name and content), log, har, or trace.")
        var format: ReplayFormat = .auto

        @Option(
            help: ArgumentHelp(
                "Sizes of the cache, with commas between: 10MB, 1GiB, or a share of what all objects take, 5%. (default: 0.5% to 100% in 8 steps; with --plot, 20 sizes)"
            )
        )
        var sizes: String?

        @Option(
            help: ArgumentHelp(
                "With commas between: density (what the library's memory cache does), lru, sieve, s3fifo, w-tinylfu, gdsf, fifo, disk (what its disk cache does), belady and belady-size (bounds that know the future), or all."
            )
        )
        var policies: String = "density,lru"

        @Option(help: "How long the answers of an access log count as fresh: 10m, 1h, 7d, or forever.")
        var assumeFreshFor = AssumedLifetime(.seconds(3_600))

        @Option(help: "How long 404 and other errors of an access log count as fresh; 0s: they are not kept.")
        var assumeErrorsFreshFor = TimeSpan(.zero)

        @Option(help: "Whose cache it is that keeps what a HAR file has: private (one user's) or shared.")
        var mode: ReplayMode = .private

        @Flag(
            help:
                "Leave out what requests of a HAR file ask of caches (Cache-Control, Pragma, If-None-Match), as if nobody had reloaded."
        )
        var ignoreReloads = false

        @Option(
            help: ArgumentHelp(
                "How many requests are held in memory; of more, a sample by object is replayed.",
                valueName: "requests"
            )
        )
        var keep = 5_000_000

        @Option(help: "What policies that draw at random draw their numbers from.")
        var seed: UInt64 = 1

        @Option(help: ArgumentHelp("Replays at a time. (default: one a processor)", valueName: "count"))
        var jobs: Int?

        @Flag(help: "One JSON object for programs in place of the text.")
        var json = false

        @Option(help: ArgumentHelp("Draw the miss-ratio curves into this file, an SVG.", valueName: "file.svg"))
        var plot: String?

        @Option(help: "What the plot shows: object (requests missed) or byte.")
        var measure: ReplayMeasure = .object

        mutating func run() async throws {
            try await run(on: .standard)
        }

        /// Runs the command with another console than the process's own.
        func run(on console: Console) async throws {
            let policies = try ReplayPolicy.list(policies)
            let sizes = try chosenSizes()
            if keep < 1_000 { throw CommandFailure.usage("--keep takes 1000 or more") }
            if files.filter({ $0 == "-" }).count > 1 {
                throw CommandFailure.usage("standard input can be read once only")
            }
            let assumptions = ReplayAssumptions(
                lifetime: assumeFreshFor.duration,
                errorLifetime: assumeErrorsFreshFor.duration,
                mode: mode == .shared ? .shared : .private,
                ignoresReloads: ignoreReloads,
                keptRequests: keep
            )
            let reader = InputReader(files: files, format: format, options: assumptions, console: console)
            let input = try await BlockingWork.run { try reader.read() }
            let run = ReplayRun(
                trace: input.trace,
                scale: ReplayScale(input),
                policies: policies,
                sizes: sizes,
                seed: seed,
                console: console
            )
            let outcome = try await run.run(width: jobs ?? ProcessInfo.processInfo.activeProcessorCount)
            let report = ReplayReport(
                name: name,
                input: input,
                assumptions: assumptions.sentences(input),
                policies: policies,
                sizes: sizes,
                outcome: outcome
            )
            if let plot {
                let svg = report.plot(measure == .byte ? .byte : .object).svg
                do {
                    try await BlockingWork.run {
                        try Data(svg.utf8).write(to: URL(fileURLWithPath: plot), options: .atomic)
                    }
                } catch {
                    throw CommandFailure("\(plot) cannot be written; check the directory and its permissions")
                }
                console.error("holdfast: \(plot): the miss-ratio curves\n")
            }
            console.output(json ? report.json + "\n" : report.text(width: console.width))
        }

        /// What the input is called: the first file without its folder.
        private var name: String {
            guard let first = files.first, first != "-" else { return "standard input" }
            let name = first.split(separator: "/").last.map(String.init) ?? first
            return files.count > 1 ? "\(name) and \(FigureText.count(files.count - 1, of: "file")) more" : name
        }

        private func chosenSizes() throws -> [CacheSize] {
            let text = sizes ?? (plot == nil ? "0.5%,1%,2%,5%,10%,20%,50%,100%" : "curve")
            guard let sizes = CacheSize.list(text) else {
                throw CommandFailure.usage(
                    "--sizes takes sizes such as 10MB, 1GiB or 5%, with commas between, not '\(text)'"
                )
            }
            return sizes
        }
    }

    /// Whose cache it is.
    enum ReplayMode: String, ExpressibleByArgument, CaseIterable, Sendable {
        case `private`, shared
    }

    /// What a plot shows.
    enum ReplayMeasure: String, ExpressibleByArgument, CaseIterable, Sendable {
        case object, byte
    }

    /// What a replay takes for granted where its input does not say.
    struct ReplayAssumptions: Sendable {
        /// How long an answer of an access log is fresh; nil: for ever.
        var lifetime: Duration? = .seconds(3_600)
        /// The same for errors; zero: they are not kept.
        var errorLifetime: Duration = .zero
        /// For whom the cache keeps what a HAR file has.
        var mode: CacheOptions.Mode = .private
        /// Whether what the requests of a HAR file ask of caches is left out.
        var ignoresReloads = false
        /// How many requests are held in memory.
        var keptRequests = 5_000_000

        /// The assumptions that a replay of this input rests on, a sentence each.
        func sentences(_ input: InputReader.Input) -> [String] {
            var sentences = input.format == .har ? harSentences : input.format == .trace ? traceSentences : logSentences
            sentences.append(
                "Sizes of caches are those of bodies alone; the memory store needs about 1 kB more for each entry."
            )
            if input.rate < 1 {
                let share = "1 in \(Int((1 / input.rate).rounded()))"
                sentences.append(
                    "Only \(share) objects is replayed, chosen by a hash, in caches smaller by the same factor; --keep sets the number."
                )
            }
            if input.cut > 0 {
                sentences.append(
                    "The last \(input.cut) requests are left out for want of room; --keep sets the number."
                )
            }
            return sentences
        }

        private var logSentences: [String] {
            let life = lifetime.map { "for \(TimeSpan($0))" } ?? "for ever"
            let errors =
                errorLifetime > .zero
                ? "404 and the like for \(TimeSpan(errorLifetime))" : "404 and other errors are not kept"
            return [
                "A log has no header fields: GET answers of status 200, 203, 204, 300, 301, 308 are kept and fresh \(life) "
                    + "(--assume-fresh-for); \(errors) (--assume-errors-fresh-for).",
                "The key is the URL with its query as it is; everyone gets the same answer.",
                "An object's size is the largest of its answers in the log; a 304 counts as a request for the whole object.",
            ]
        }

        private var harSentences: [String] {
            [
                "Kept, fresh and reusable is what RFC 9111 says of the fields, for a \(mode == .shared ? "shared" : "private") cache (--mode).",
                ignoresReloads
                    ? "Cache-Control, Pragma and conditions of the requests are left out (--ignore-reloads)."
                    : "A request that asks for validation, as a reload does, is no hit in a cache of any size (--ignore-reloads leaves that out).",
                "An object's size is the largest of its answers; a 304 counts as a request for the whole object.",
            ]
        }

        private var traceSentences: [String] {
            [
                "Each request is for something that may be kept and never expires.",
                "Another size of the same key is another version: a miss.",
            ]
        }
    }

    /// A length of time, or for ever.
    struct AssumedLifetime: ExpressibleByArgument, Sendable, Hashable {
        /// The length; nil: for ever.
        let duration: Duration?
        let defaultValueDescription: String

        init(_ duration: Duration?) {
            self.duration = duration
            defaultValueDescription = duration.map { "\(TimeSpan($0))" } ?? "forever"
        }

        init?(argument: String) {
            if argument == "forever" {
                duration = nil
            } else {
                guard let span = TimeSpan(argument: argument) else { return nil }
                duration = span.duration
            }
            defaultValueDescription = argument
        }
    }
#endif
