// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastSemantics
internal import HoldfastStorage

/// The command line, read and checked.
struct Arguments: Sendable, Equatable {
    /// The URLs to load; empty: the built-in origin.
    var urls: [URL] = []
    /// How many calls each run makes.
    var calls = 0
    /// How many resources the built-in origin has.
    var resources = 0
    /// How many calls are in flight at once.
    var concurrency = 16
    /// The seed of all random choices.
    var seed: UInt64 = 9_111
    /// The share of its sends that the built-in origin fails.
    var failShare = 0.08
    /// The parent of the disk cache's directory; nil: a temporary one.
    var directory: String?
    /// Whether the table is printed as JSON.
    var isJSON = false
    /// Whether only the help text is wanted.
    var wantsHelp = false

    /// Reads the words after the program's name.
    ///
    /// `--name value` and `--name=value` mean the same, the last of two wins, and `--` ends the options.
    ///
    /// - Throws: a ``CommandFailure`` of status 64 that names the option and what it allows.
    init(parsing words: some Sequence<String>) throws(CommandFailure) {
        var reader = OptionReader(words, of: "quickstart")
        var isQuick = false
        var calls: Int?
        var resources: Int?
        var onlyWithoutURLs: String?
        while let word = reader.next() {
            switch word {
            case .operand(let text): urls.append(try Arguments.url(text))
            case .option(let name):
                switch name {
                case "--help", "-h": wantsHelp = true
                case "--json": isJSON = true
                case "--quick": isQuick = true
                case "--calls": calls = try reader.number(in: 1...10_000_000)
                case "--concurrency": concurrency = try reader.number(in: 1...1_024)
                case "--seed": seed = try reader.number(in: 0...UInt64.max)
                case "--directory": directory = try reader.text("the path of a directory")
                case "--resources":
                    resources = try reader.number(in: 1...100_000)
                    onlyWithoutURLs = name
                case "--fail-share":
                    failShare = try reader.share(upTo: 0.9)
                    onlyWithoutURLs = name
                default: throw .usage("unknown option \(name)")
                }
                try reader.finish()
            }
        }
        if wantsHelp { return }
        if !urls.isEmpty, let onlyWithoutURLs {
            throw .usage("\(onlyWithoutURLs) is for the built-in origin and cannot be used with URLs")
        }
        self.calls = calls ?? (urls.isEmpty ? (isQuick ? 1_000 : 4_000) : (isQuick ? 60 : 200))
        self.resources = resources ?? (isQuick ? 80 : 300)
    }

    private static func url(_ text: String) throws(CommandFailure) -> URL {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty
        else { throw .usage("“\(text)” is not a URL that begins with http:// or https://") }
        return url
    }
}

/// The output of `--help`.
enum Help {
    static let text = """
        usage: quickstart [options]
               quickstart [options] URL…

        Replays one load of HTTP calls four times and prints what each run cost:

          bare            a plain client
          retries         with retries: exponential backoff, full jitter, 8 attempts at most
          cache+retries   with a cache on disk as well, empty at first
          from disk       the same again, with the disk cache that the third run left

        Without URLs, an origin in this process answers the calls. Some of its resources may be cached (max-age), some must
        be revalidated (ETag), some vary by language, and some must not be stored. It also fails a share of the requests:
        with 503, with and without Retry-After, or by dropping the connection. The calls follow a Zipf distribution: a few
        resources are requested often, most of them rarely.

        URLs are loaded with URLSession, each of them once before the runs; no failures are added. In the last run, the
        first call of each URL requests revalidation, so that a server with validators answers 304, as it would to a
        restarted client.

        options:
          --calls N         calls in each run (default 4000; 200 with URLs)
          --resources N     resources at the built-in origin (default 300)
          --concurrency N   calls in flight at once (default 16)
          --seed N          seed of all random choices (default 9111)
          --fail-share P    share of requests that the built-in origin fails, 0 to 0.9 (default 0.08)
          --directory PATH  keep the disk cache in PATH/holdfast-quickstart, which is emptied at the start and kept;
                            by default it is in a temporary directory that is removed at the end
          --quick           fewer calls and resources
          --json            print only the table, as JSON
          --help            print this help

        columns:
          calls           calls of the program
          sent            requests that reached the origin, as counted by the origin (with URLs: by the transport)
          failed          calls that ended in an error or a status of 500 or more
          hit rate        calls answered from the store without waiting for the origin, of all calls that were looked up
          byte hit rate   the same, weighted by body bytes
          bytes saved     body bytes that came from the store instead of the network, also after a 304
          p50, p99        time of a call until its body was read to the end; half and 99 % of the calls took no longer

        exit status: 0 if the runs were made, whatever their results; 64 for a wrong command line; 1 if a URL does not
        respond or the directory cannot be used; 130 after Control-C
        """
}

/// The directory of the disk cache of the last two runs, which may be temporary.
struct CacheDirectory: Sendable, Equatable {
    /// The store's own directory.
    let path: String
    /// Whether ``removeIfTemporary()`` removes it.
    let isTemporary: Bool

    /// Creates the directory for this run of the program.
    ///
    /// - Parameter parent: nil for a temporary directory; otherwise its subdirectory `holdfast-quickstart` is used, and nothing
    ///   else in it is touched.
    /// - Throws: a ``CommandFailure`` of status 1 that names the directory.
    init(in parent: String?) throws(CommandFailure) {
        if let parent {
            path = URL(fileURLWithPath: parent).appendingPathComponent("holdfast-quickstart").path
            isTemporary = false
        } else {
            let name = "holdfast-quickstart-\(UUID().uuidString)"
            path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
            isTemporary = true
        }
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw .unusable(directory: path, CacheDirectory.plain(error))
        }
    }

    /// Opens the store in the directory.
    ///
    /// - Throws: a ``CommandFailure`` of status 1 that names the directory.
    func openStore(capacity: Int, clock: any HoldfastClock) async throws -> any CacheStore {
        do {
            let now = StoreInstant(milliseconds: clock.timestamp.millisecondsSinceEpoch)
            return try await DiskStore.open(directory: path, capacity: capacity, now: now)
        } catch {
            throw CommandFailure.unusable(directory: path, error)
        }
    }

    /// Removes a temporary directory with its content; leaves any other directory alone.
    func removeIfTemporary() {
        if isTemporary { try? FileManager.default.removeItem(atPath: path) }
    }

    /// The system's own error text if Foundation passes it on: its other texts only say that something went wrong.
    private static func plain(_ error: any Error) -> PlainReason {
        let inner = (error as? CocoaError)?.underlying ?? error
        guard let system = inner as? POSIXError else { return PlainReason(description: error.localizedDescription) }
        return PlainReason(description: String(cString: strerror(system.code.rawValue)))
    }

    private struct PlainReason: Error, CustomStringConvertible {
        let description: String
    }
}

extension CommandFailure {
    /// The command line is wrong.
    static func usage(_ text: String) -> CommandFailure {
        .usage(text, of: "quickstart")
    }

    /// A URL did not respond.
    static func unreachable(_ url: String, reason: String) -> CommandFailure {
        CommandFailure("\(url) cannot be reached: \(reason)", exitStatus: 1)
    }

    /// The directory of the disk cache cannot be used.
    static func unusable(directory: String, _ error: any Error) -> CommandFailure {
        var reason = (error as? StoreError)?.message ?? "\(error)"
        if reason.hasSuffix(".") { reason.removeLast() }
        return CommandFailure(
            "the directory \(directory) cannot be used: \(reason); choose another one with --directory",
            exitStatus: 1
        )
    }

    /// Any other error that ended the runs.
    static func failed(_ error: any Error) -> CommandFailure {
        CommandFailure("the runs ended early: \(error)", exitStatus: 1)
    }

    /// The user pressed Control-C.
    static let interrupted = CommandFailure(
        "interrupted; nothing was left except the directory of --directory",
        exitStatus: 130
    )
}
