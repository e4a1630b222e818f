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
            abstract: "Fetch URLs through a disk cache, and retry where that makes sense.",
            discussion: """
                Prints or saves the body. Responses are cached and reused as RFC 9111 allows; with -v, each one shows what the cache \
                did and by which section. Failed requests are retried by the library's rules: only those that may be repeated, with \
                growing waits, and as Retry-After asks.

                \(GetStatus.help)
                """
        )

        @Argument(help: ArgumentHelp("http or https URLs, fetched one after another.", valueName: "url"))
        var urls: [String]

        @Option(
            name: [.short, .long],
            help: ArgumentHelp(
                "Save the body in this file when it is complete; give it once per URL, in order. - is standard output.",
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
                "With -, continue an incomplete file of an earlier -C, without the cache; starts over if the server has no ranges.",
                valueName: "-"
            )
        )
        var continueAt: String?

        @Flag(
            name: [.short, .long],
            help: "Show requests, responses, attempts and cache decisions on standard error."
        )
        var verbose = false

        @Flag(name: [.short, .long], help: "Print the response's head before its body.")
        var include = false

        @Flag(name: [.customShort("I"), .long], help: "Send HEAD and print the response's head.")
        var head = false

        @Option(name: [.customShort("X"), .long], help: "The request method. (default: GET; POST with --data)")
        var method: String?

        @Option(
            name: [.customShort("H"), .long],
            parsing: .unconditionalSingleValue,
            help: ArgumentHelp(
                "A header field of the request; 'Name:' removes one that would be sent.",
                valueName: "name: value"
            )
        )
        var header: [String] = []

        @Option(
            name: [.short, .long],
            parsing: .unconditional,
            help: ArgumentHelp(
                "The content: text, @file, or @- for standard input; sent as a form unless -H sets Content-Type.",
                valueName: "content"
            )
        )
        var data: String?

        @Flag(name: [.customShort("L"), .long], help: "Follow redirects.")
        var location = false

        @Option(help: ArgumentHelp("The most redirects to follow with -L.", valueName: "count"))
        var maxRedirects = 20

        @Flag(name: [.short, .long], help: "Do not print the body of a response with a status of 400 or above.")
        var fail = false

        @Option(
            help: ArgumentHelp(
                "The directory of the cache. (default: holdfast in the user's cache folder)",
                valueName: "directory"
            )
        )
        var cacheDir: String?

        @Option(help: ArgumentHelp("The most disk space that the cache takes.", valueName: "size"))
        var cacheSize = ByteCount(256_000_000)

        @Option(
            help: ArgumentHelp("Rules by route for the cache (docs/reference/rules.md), as JSON.", valueName: "file")
        )
        var rules: String?

        @Flag(help: "Use no cache at all.")
        var noCache = false

        @Option(
            help: ArgumentHelp(
                "Accept a stored response up to this long after it became stale: 30s, 10m, 1d.",
                valueName: "time"
            )
        )
        var maxStale: TimeSpan?

        @Flag(help: "Ask the server in any case, and store its response.")
        var reload = false

        @Flag(help: "Answer only from the cache, or with 504.")
        var onlyIfCached = false

        @Flag(help: "Store no response, and use no stored one.")
        var noStore = false

        @Option(help: "default: four attempts; patient: up to 50, with waits; none: one.")
        var retry: GetRetry = .default

        @Option(help: ArgumentHelp("How long each URL may take, with its body, retries and waits.", valueName: "time"))
        var deadline: TimeSpan?

        @Option(
            help: ArgumentHelp("How long one attempt may take until its response head; 0: no limit.", valueName: "time")
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
            if output.count > urls.count { throw ValidationError("There are more -o options than URLs.") }
            if remoteName, !output.isEmpty { throw ValidationError("Use -o or -O, not both.") }
            if let continueAt {
                if continueAt != "-" {
                    throw ValidationError("-C only accepts -: the file's length says where to continue.")
                }
                if output.isEmpty, !remoteName { throw ValidationError("-C needs a file: -o or -O.") }
                if head || data != nil { throw ValidationError("-C is for GET. Leave out -I and --data.") }
            }
            if head, data != nil || method != nil {
                throw ValidationError("-I sends HEAD. Leave out --data and --method.")
            }
            if noCache, onlyIfCached {
                throw ValidationError("--no-cache and --only-if-cached cannot be used together.")
            }
            if reload, onlyIfCached { throw ValidationError("Use --reload or --only-if-cached, not both.") }
            if !(0...50).contains(maxRedirects) { throw ValidationError("--max-redirects must be between 0 and 50.") }
            if data == "@-", urls.count > 1 { throw ValidationError("Standard input can be used for only one URL.") }
        }

        /// The file for the body of each request; nil: standard output.
        func places(of requests: [GetRequest], in directory: URL) throws(CommandFailure) -> [URL?] {
            var places: [URL?] = []
            for (index, request) in requests.enumerated() {
                var name: String?
                if remoteName, let url = request.request.url { name = OutputFile.name(of: url) }
                if index < output.count, output[index] != "-" { name = output[index] }
                if name?.isEmpty == true { throw .usage("-o needs the name of a file") }
                places.append(
                    name.map { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : directory.appendingPathComponent($0) }
                )
            }
            return places
        }
    }

    /// How `holdfast get` retries.
    enum GetRetry: String, ExpressibleByArgument, CaseIterable, Sendable {
        case `default`, patient, none
    }
#endif
