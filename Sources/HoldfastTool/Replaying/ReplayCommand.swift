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

    /// `holdfast replay`: what a cache would have hit in recorded requests.
    struct ReplayCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "replay",
            abstract: "Find out from a log what hit rates caches of different sizes would have had.",
            discussion: """
                Reads access logs in the common or combined format of Apache and nginx, HAR files of browsers (evaluated by their header \
                fields, by RFC 9111), or .trace files (12 bytes per request: key in 8, size in 4, little-endian), and replays \
                the requests with caches of several sizes and policies. Pipe compressed logs: zcat access.log.*.gz | holdfast \
                replay -

                Hit ratios are relative to the requests that a cache looks up: GET, including those whose response may not be kept. What had \
                to be assumed is printed with the results.

                Exit status: 0 done; 1 a file cannot be read, or has no requests; 64 a wrong command line; 130 interrupted.
                """
        )

        @Argument(
            help: ArgumentHelp("Logs of one format, in order of time; - is standard input.", valueName: "file")
        )
        var files: [String]

        @Option(help: "auto (by name and content), log, har, or trace.")
        var format: ReplayFormat = .auto

        @Option(
            help: ArgumentHelp(
                "Cache sizes, separated by commas: 10MB, 1GiB, or a share of the size of all objects, 5%. (default: 0.5% to 100% in 8 steps; with --plot, 20 sizes)"
            )
        )
        var sizes: String?

        @Option(
            help: ArgumentHelp(
                "Separated by commas: density (the library's memory cache), lru, sieve, s3fifo, w-tinylfu, gdsf, fifo, disk (its disk cache), belady and belady-size (which know the future), or all."
            )
        )
        var policies: String = "density,lru"

        @Option(help: "How long the responses in an access log count as fresh: 10m, 1h, 7d, or forever.")
        var assumeFreshFor = AssumedLifetime(.seconds(3_600))

        @Option(help: "How long 404 and other errors in an access log count as fresh; 0s: they are not kept.")
        var assumeErrorsFreshFor = TimeSpan(.zero)

        @Option(help: "The kind of cache for a HAR file: private (for one user) or shared.")
        var mode: CacheKind = .private

        @Flag(
            help:
                "Ignore the cache directives in a HAR file's requests (Cache-Control, Pragma, If-None-Match), as if no one had reloaded."
        )
        var ignoreReloads = false

        @Option(
            help: ArgumentHelp("Rules by route for the cache (docs/reference/rules.md), as JSON.", valueName: "file")
        )
        var rules: String?

        @Option(
            help: ArgumentHelp(
                "The most requests to hold in memory; if there are more, a sample of the objects is replayed.",
                valueName: "requests"
            )
        )
        var keep = 5_000_000

        @Option(help: "The seed of policies that use random numbers.")
        var seed: UInt64 = 1

        @Option(help: ArgumentHelp("Replays at a time. (default: one per processor)", valueName: "count"))
        var jobs: Int?

        @Flag(help: "Print one JSON object instead of text.")
        var json = false

        @Option(help: ArgumentHelp("Draw the miss-ratio curves to this SVG file.", valueName: "file.svg"))
        var plot: String?

        @Option(help: "What the plot shows: object (requests missed) or byte.")
        var measure: ReplayMeasure = .object

        mutating func run() async throws {
            try await run(on: .standard)
        }

        /// Runs the command with a given console.
        func run(on console: Console) async throws {
            let policies = try ReplayPolicy.list(policies)
            let sizes = try chosenSizes()
            if keep < 1_000 { throw CommandFailure.usage("--keep must be at least 1000") }
            if files.filter({ $0 == "-" }).count > 1 {
                throw CommandFailure.usage("standard input can be read only once")
            }
            let assumptions = ReplayAssumptions(
                lifetime: assumeFreshFor.duration,
                errorLifetime: assumeErrorsFreshFor.duration,
                mode: mode.mode,
                ignoresReloads: ignoreReloads,
                keptRequests: keep,
                rules: try rules.map { file throws(CommandFailure) in try CacheRules(ofOption: file) } ?? CacheRules()
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
                let file = try await OutputFile.open(URL(fileURLWithPath: plot))
                defer { file.discard() }
                try await file.append(ByteChunk(copying: svg.utf8))
                try await file.finish()
                console.error("holdfast: \(plot): the miss-ratio curves\n")
            }
            console.output(json ? report.json + "\n" : report.text(width: console.width))
        }

        /// The name of the input: the first file without its folder.
        private var name: String {
            guard let first = files.first, first != "-" else { return "standard input" }
            let name = first.split(separator: "/").last.map(String.init) ?? first
            return files.count > 1 ? "\(name) and \(FigureText.count(files.count - 1, of: "file")) more" : name
        }

        private func chosenSizes() throws -> [CacheSize] {
            let text = sizes ?? (plot == nil ? "0.5%,1%,2%,5%,10%,20%,50%,100%" : "curve")
            guard let sizes = CacheSize.list(text) else {
                throw CommandFailure.usage(
                    "--sizes needs sizes such as 10MB, 1GiB or 5%, separated by commas, not '\(text)'"
                )
            }
            return sizes
        }
    }

    /// What a plot shows.
    enum ReplayMeasure: String, ExpressibleByArgument, CaseIterable, Sendable {
        case object, byte
    }

    /// What a replay assumes if its input does not say.
    struct ReplayAssumptions: Sendable {
        /// How long a response in an access log is fresh; nil: forever.
        var lifetime: Duration? = .seconds(3_600)
        /// The same for errors; zero: they are not kept.
        var errorLifetime: Duration = .zero
        /// The kind of cache for a HAR file.
        var mode: CacheOptions.Mode = .private
        /// Whether the cache directives in a HAR file's requests are ignored.
        var ignoresReloads = false
        /// How many requests are held in memory.
        var keptRequests = 5_000_000
        /// The rules by route of the cache.
        var rules = CacheRules()

        /// Whether some responses in an access log are fresh for a limited time.
        var limitsLives: Bool { lifetime != nil || errorLifetime > .zero || !rules.rules.isEmpty }

        /// The assumptions of a replay of this input, one sentence each.
        func sentences(_ input: InputReader.Input) -> [String] {
            var sentences = input.format == .har ? harSentences : input.format == .trace ? traceSentences : logSentences
            if !rules.rules.isEmpty { sentences.append(input.format == .trace ? traceRules : otherRules(input)) }
            sentences.append(
                "Cache sizes count only bodies; the memory store needs about 1 kB more for each entry."
            )
            if input.rate < 1 {
                let share = "1 in \(ReplayAssumptions.parts(input.rate))"
                sentences.append(
                    "Only \(share) objects is replayed, chosen by a hash, with caches smaller by the same factor; --keep sets the number."
                )
            }
            if input.recorded < 1 {
                sentences.append(
                    "The file has the requests for about 1 in \(ReplayAssumptions.parts(input.recorded)) objects (FILE.rate); sizes and bytes are those "
                        + "of the whole."
                )
            }
            if input.cut > 0 {
                sentences.append(
                    "The last \(Int(Double(input.cut) / input.rate)) requests are left out because of the memory limit; "
                        + "--keep sets the number."
                )
            }
            return sentences
        }

        private static func parts(_ share: Double) -> Int { Int(min((1 / share).rounded(), 0x1p62)) }

        private var logSentences: [String] {
            let life = lifetime.map { "for \(TimeSpan($0))" } ?? "forever"
            let errors =
                errorLifetime > .zero
                ? "404 and similar for \(TimeSpan(errorLifetime))" : "404 and other errors are not kept"
            return [
                "A log has no header fields: responses to GET with status 200, 203, 204, 300, 301, 308 are kept and fresh \(life) "
                    + "(--assume-fresh-for); \(errors) (--assume-errors-fresh-for).",
                "The key is the URL with its exact query; everyone gets the same response.",
                "An object's size is the largest of its responses in the log; a 304 counts as a request for the whole object.",
            ]
        }

        private var harSentences: [String] {
            [
                "RFC 9111 and the fields decide what is kept, fresh and reusable, for a \(mode == .shared ? "shared" : "private") cache (--mode).",
                ignoresReloads
                    ? "Cache-Control, Pragma and conditions of the requests are ignored (--ignore-reloads)."
                    : "A request that asks for validation, as a reload does, is not a hit in a cache of any size (--ignore-reloads ignores that).",
                "An object's size is the largest of its responses; a 304 counts as a request for the whole object.",
            ]
        }

        private var traceRules: String { "A trace has no URLs, so the rules (--rules) are not used." }

        private func otherRules(_ input: InputReader.Input) -> String {
            input.format == .har
                ? "The rules by route (--rules) apply as in the cache."
                : "The rules by route (--rules) come first; those for content types or with key fields have no effect, since a log has neither."
        }

        private var traceSentences: [String] {
            [
                "Each response may be kept and never expires.",
                "A different size for the same key is a new version: a miss.",
            ]
        }
    }

    /// A length of time, or forever.
    struct AssumedLifetime: ExpressibleByArgument, Sendable, Hashable {
        /// The length; nil: forever.
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
