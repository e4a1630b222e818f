// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

/// The command line, read and checked.
struct Arguments: Sendable, Equatable {
    /// A service that runs already; nil: one is started.
    var url: URL?
    /// The clients to run.
    var clients = ClientKind.allCases
    /// Whether the clients were named, so that one that is not there is an error.
    var namesClients = false
    /// How many people look at the dashboard at once.
    var users = 4
    /// How often each of them looks.
    var rounds = 5
    /// The time between two looks.
    var pause: Duration = .milliseconds(1_100)
    /// How long each answer of the service takes, in milliseconds.
    var delay = 30
    /// Whether the table is printed as JSON.
    var isJSON = false
    /// Whether help is all that is wanted.
    var wantsHelp = false

    /// Reads the words after the program's name; `--name value` and `--name=value` mean the same, the last of two wins.
    ///
    /// - Throws: a ``CommandFailure`` of status 64 that names the option and what it allows.
    init(parsing words: some Sequence<String>) throws(CommandFailure) {
        var isQuick = false
        var rounds: Int?
        var words = ArraySlice(
            words.flatMap { word in
                word.hasPrefix("--")
                    ? word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                    : [word]
            }
        )
        while let name = words.popFirst() {
            switch name {
            case "--help", "-h": wantsHelp = true
            case "--json": isJSON = true
            case "--quick": isQuick = true
            case "--url": url = try Arguments.url(words.popFirst())
            case "--client":
                clients = try Arguments.clients(words.popFirst())
                namesClients = true
            case "--users": users = try Arguments.number(words.popFirst(), for: name, in: 1...64)
            case "--rounds": rounds = try Arguments.number(words.popFirst(), for: name, in: 1...1_000)
            case "--pause-ms":
                pause = .milliseconds(try Arguments.number(words.popFirst(), for: name, in: 0...60_000))
            case "--delay-ms": delay = try Arguments.number(words.popFirst(), for: name, in: 0...10_000)
            default: throw .usage("unknown option \(name)")
            }
        }
        self.rounds = rounds ?? (isQuick ? 2 : 5)
    }

    private static func number(
        _ word: String?,
        for option: String,
        in range: ClosedRange<Int>
    ) throws(CommandFailure) -> Int {
        guard let word, let number = Int(word), range.contains(number) else {
            throw .usage("\(option) wants a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func url(_ word: String?) throws(CommandFailure) -> URL {
        guard let word, let url = URL(string: word), let host = url.host, !host.isEmpty,
            ["http", "https"].contains(url.scheme?.lowercased())
        else { throw .usage("--url wants a URL that begins with http:// or https://") }
        return url
    }

    private static func clients(_ word: String?) throws(CommandFailure) -> [ClientKind] {
        let all = ClientKind.allCases.map(\.rawValue).joined(separator: ", ")
        var clients: [ClientKind] = []
        for name in (word ?? "").split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = ClientKind(rawValue: String(name)) else {
                throw .usage("--client wants one or more of \(all), with commas between them")
            }
            if !clients.contains(kind) { clients.append(kind) }
        }
        return clients
    }
}
