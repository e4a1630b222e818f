// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

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
    /// What all chance derives from.
    var seed: UInt64 = 9_111
    /// The share of its sends that the built-in origin fails.
    var failShare = 0.08
    /// The parent of the disk cache's directory; nil: a temporary one.
    var directory: String?
    /// Whether the table is printed as JSON.
    var isJSON = false
    /// Whether help is all that is wanted.
    var wantsHelp = false

    /// Reads the words after the program's name.
    ///
    /// `--name value` and `--name=value` mean the same, the last of two wins, and `--` ends the options.
    ///
    /// - Throws: a ``CommandFailure`` of status 64 that names the option and what it allows.
    init(parsing words: some Sequence<String>) throws(CommandFailure) {
        var reader = OptionReader(words)
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
            throw .usage("\(onlyWithoutURLs) belongs to the built-in origin and cannot go with URLs")
        }
        self.calls = calls ?? (urls.isEmpty ? (isQuick ? 1_000 : 4_000) : (isQuick ? 60 : 200))
        self.resources = resources ?? (isQuick ? 80 : 300)
    }

    private static func url(_ text: String) throws(CommandFailure) -> URL {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty
        else { throw .usage("“\(text)” is no URL that begins with http:// or https://") }
        return url
    }
}
