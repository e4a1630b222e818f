// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastCommand

/// The command line, read and checked.
struct Arguments: Sendable, Equatable {
    /// The URL of a running service; nil: one is started.
    var url: URL?
    /// The clients to run.
    var clients = ClientKind.allCases
    /// Whether the clients were named, so that an unavailable one is an error.
    var namesClients = false
    /// How many people use the dashboard at once.
    var users = 4
    /// How often each of them looks at it.
    var rounds = 5
    /// The time between two looks.
    var pause: Duration = .milliseconds(1_100)
    /// How long the service takes for each response, in milliseconds.
    var delay = 30
    /// Whether the table is printed as JSON.
    var isJSON = false
    /// Whether only the help text is wanted.
    var wantsHelp = false

    /// Reads the words after the program's name; `--name value` and `--name=value` mean the same, the last of two wins.
    ///
    /// - Throws: a ``CommandFailure`` of status 64 that names the option and what it allows.
    init(parsing words: some Sequence<String>) throws(CommandFailure) {
        var isQuick = false
        var rounds: Int?
        var reader = OptionReader(words, of: "weather-example")
        while let word = reader.next() {
            guard case .option(let name) = word else { throw .usage("operands are not allowed") }
            switch name {
            case "--help", "-h": wantsHelp = true
            case "--json": isJSON = true
            case "--quick": isQuick = true
            case "--url": url = try Arguments.url(&reader)
            case "--client":
                clients = try Arguments.clients(&reader)
                namesClients = true
            case "--users": users = try reader.number(in: 1...64)
            case "--rounds": rounds = try reader.number(in: 1...1_000)
            case "--pause-ms": pause = .milliseconds(try reader.number(in: 0...60_000))
            case "--delay-ms": delay = try reader.number(in: 0...10_000)
            default: throw .usage("unknown option \(name)")
            }
            try reader.finish()
        }
        self.rounds = rounds ?? (isQuick ? 2 : 5)
    }

    private static func url(_ reader: inout OptionReader) throws(CommandFailure) -> URL {
        let expected = "a URL that begins with http:// or https://"
        guard let url = URL(string: try reader.text(expected)), let host = url.host, !host.isEmpty,
            ["http", "https"].contains(url.scheme?.lowercased())
        else { throw .usage("--url needs \(expected)") }
        return url
    }

    private static func clients(_ reader: inout OptionReader) throws(CommandFailure) -> [ClientKind] {
        let all = ClientKind.allCases.map(\.rawValue).joined(separator: ", ")
        let expected = "one or more of \(all), with commas between them"
        var clients: [ClientKind] = []
        for name in try reader.text(expected).split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = ClientKind(rawValue: String(name)) else { throw .usage("--client needs \(expected)") }
            if !clients.contains(kind) { clients.append(kind) }
        }
        return clients
    }
}

/// The output of `--help`.
enum Help {
    static let text = """
        usage: weather-example [options]

        Runs one dashboard job with each kind of client, before and after the one-line change that adds Holdfast, and
        prints what each run cost. The job: several people look several times at a list of stations, and at the current
        weather and two forecasts of each station. The service is a small process on this machine that has ETags and rate
        limits, and is sometimes overloaded.

        options:
          --url URL         a running weather service; by default one is started and stopped
          --client LIST     some of urlsession, async-http-client, generated (default: all whose traits are on)
          --users N         people who look at the same time (default 4)
          --rounds N        how often each of them looks (default 5)
          --pause-ms N      time between two looks (default 1100)
          --delay-ms N      time that the started service takes for a response (default 30)
          --quick           2 rounds
          --json            print only the table, as JSON
          --help            print this help

        columns:
          requests      requests that the service received
          bytes         bytes of content that it sent
          304s, 429s    responses with these statuses
          failed        calls that ended in an error or a status of 400 or more
          time          time of the whole job, with its pauses
          bytes saved   bytes of content that came from the cache
          time saved    waiting for the service that cache hits saved, summed over all calls

        exit status: 0 if the runs were made, whatever their results; 64 for a wrong command line, or for a named client
        whose trait is off; 1 if there is no service
        """
}

/// Status 64 is also used for a trait that is off.
extension CommandFailure {
    /// The command line is wrong.
    static func usage(_ text: String) -> CommandFailure {
        .usage(text, of: "weather-example")
    }

    /// The service cannot be started or read.
    static func service(_ text: String) -> CommandFailure {
        CommandFailure(text)
    }
}
