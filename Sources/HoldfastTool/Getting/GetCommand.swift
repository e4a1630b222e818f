// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// `holdfast get`: like curl with a cache and backoff.
    struct GetCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "get",
            abstract: "Fetch URLs through a cache on the disk, and try again where that makes sense.",
            discussion: """
                Prints the body, or saves it. Answers are kept and used again as RFC 9111 allows; -v tells for each what the cache \
                did and by which clause. Requests that failed are sent again by the library's rules: only what may be repeated, with \
                growing waits, Retry-After heeded.

                \(GetStatus.help)
                """
        )

        @Argument(help: ArgumentHelp("http or https URLs, fetched one after the other.", valueName: "url"))
        var urls: [String]

        @Option(
            name: [.short, .long],
            help: ArgumentHelp(
                "Save the body here, once it is whole; once for each URL, in their order. - is standard output.",
                valueName: "file"
            )
        )
        var output: [String] = []

        @Flag(name: [.customShort("O"), .long], help: "Save each body under the last part of its URL's path.")
        var remoteName = false

        @Option(
            name: [.customShort("C"), .long],
            parsing: .unconditional,
            help: ArgumentHelp(
                "With -, go on where a file broke off that -C began, past the cache; begins anew where the server has no ranges.",
                valueName: "-"
            )
        )
        var continueAt: String?

        @Flag(
            name: [.short, .long],
            help: "Show requests, responses, attempts and what the cache decided, on standard error."
        )
        var verbose = false

        @Flag(name: [.short, .long], help: "Print the head of the response before its body.")
        var include = false

        @Flag(name: [.customShort("I"), .long], help: "Send HEAD and print the head.")
        var head = false

        @Option(name: [.customShort("X"), .long], help: "The method. (default: GET; POST with --data)")
        var method: String?

        @Option(
            name: [.customShort("H"), .long],
            parsing: .unconditionalSingleValue,
            help: ArgumentHelp(
                "A header field of the request; 'Name:' takes away one that would be sent.",
                valueName: "name: value"
            )
        )
        var header: [String] = []

        @Option(
            name: [.short, .long],
            parsing: .unconditional,
            help: ArgumentHelp(
                "The content: text, @file, or @- for standard input; as a form unless -H says Content-Type.",
                valueName: "content"
            )
        )
        var data: String?

        @Flag(name: [.customShort("L"), .long], help: "Follow redirects.")
        var location = false

        @Option(help: ArgumentHelp("How many redirects are followed at most with -L.", valueName: "count"))
        var maxRedirects = 20

        @Flag(name: [.short, .long], help: "Print no body of an answer whose status is 400 or above.")
        var fail = false

        @Option(
            help: ArgumentHelp(
                "Where the cache lies. (default: holdfast in the user's folder for caches)",
                valueName: "directory"
            )
        )
        var cacheDir: String?

        @Option(help: ArgumentHelp("How much the cache takes on the disk at most.", valueName: "size"))
        var cacheSize = ByteCount(256_000_000)

        @Option(
            help: ArgumentHelp("Rules by route for the cache (docs/reference/rules.md), as JSON.", valueName: "file")
        )
        var rules: String?

        @Flag(help: "Neither look into a cache nor keep anything.")
        var noCache = false

        @Option(
            help: ArgumentHelp("Take a stored answer up to so long past its life: 30s, 10m, 1d.", valueName: "time")
        )
        var maxStale: TimeSpan?

        @Flag(help: "Ask the server whatever is stored, and store its answer.")
        var reload = false

        @Flag(help: "Answer from the cache or not at all (504).")
        var onlyIfCached = false

        @Flag(help: "Keep nothing of the answers, and use nothing stored.")
        var noStore = false

        @Option(help: "default: four attempts; patient: up to 50, with waits; none: one.")
        var retry: GetRetry = .default

        @Option(help: ArgumentHelp("How long each URL may take, body, retries and waits included.", valueName: "time"))
        var deadline: TimeSpan?

        @Option(
            help: ArgumentHelp("How long one attempt may take up to its response head; 0: no limit.", valueName: "time")
        )
        var timeout = TimeSpan(.seconds(60))

        mutating func run() async throws {
            let environment = GetEnvironment.network(
                .standard,
                cacheDirectory: GetEnvironment.userCacheDirectory(ProcessInfo.processInfo.environment)
            )
            let run = GetRun(command: self, environment: environment)
            let result = await Interruption.cancelling { try await run.run() }
            await environment.end()
            do {
                let status = try result.get()
                if status != 0 { throw ExitCode(status) }
            } catch is CancellationError {
                throw CommandFailure.interrupted
            }
        }

        func validate() throws {
            if output.count > urls.count { throw ValidationError("There are more -o than URLs.") }
            if remoteName, !output.isEmpty { throw ValidationError("Write -o or -O, not both.") }
            if let continueAt {
                if continueAt != "-" { throw ValidationError("-C takes - alone: the file says where it broke off.") }
                if output.isEmpty, !remoteName { throw ValidationError("-C needs a file: -o or -O.") }
                if head || data != nil { throw ValidationError("-C is for GET; leave out -I and --data.") }
            }
            if head, data != nil || method != nil {
                throw ValidationError("-I sends HEAD; leave out --data and --method.")
            }
            if noCache, onlyIfCached { throw ValidationError("Without a cache nothing can be answered from it.") }
            if reload, onlyIfCached { throw ValidationError("Write --reload or --only-if-cached, not both.") }
            if !(0...50).contains(maxRedirects) { throw ValidationError("--max-redirects takes 0 to 50.") }
            if data == "@-", urls.count > 1 { throw ValidationError("Standard input serves one URL only.") }
        }

        /// Where the body of each request goes; nil: to standard output.
        func places(of requests: [GetRequest], in directory: URL) throws(CommandFailure) -> [URL?] {
            var places: [URL?] = []
            for (index, request) in requests.enumerated() {
                var name: String?
                if remoteName, let url = request.request.url { name = OutputFile.name(of: url) }
                if index < output.count, output[index] != "-" { name = output[index] }
                if name?.isEmpty == true { throw .usage("-o takes the name of a file") }
                places.append(
                    name.map { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : directory.appendingPathComponent($0) }
                )
            }
            return places
        }
    }

    /// How `holdfast get` treats failures.
    enum GetRetry: String, ExpressibleByArgument, CaseIterable, Sendable {
        case `default`, patient, none
    }
#endif
