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
        var reader = OptionReader(words, of: "weather-example")
        while let word = reader.next() {
            guard case .option(let name) = word else { throw .usage("no operand is taken") }
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
        else { throw .usage("--url wants \(expected)") }
        return url
    }

    private static func clients(_ reader: inout OptionReader) throws(CommandFailure) -> [ClientKind] {
        let all = ClientKind.allCases.map(\.rawValue).joined(separator: ", ")
        let expected = "one or more of \(all), with commas between them"
        var clients: [ClientKind] = []
        for name in try reader.text(expected).split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = ClientKind(rawValue: String(name)) else { throw .usage("--client wants \(expected)") }
            if !clients.contains(kind) { clients.append(kind) }
        }
        return clients
    }
}

/// What `--help` prints.
enum Help {
    static let text = """
        usage: weather-example [options]

        Runs one dashboard job with each client that people have, before and after the one line that puts Holdfast behind
        it, and prints what each run cost. The job: several people look several times at a list of stations, and at the
        current weather and two forecasts of each. The service is a small process on this machine that has ETags and rate
        limits, and that is short of capacity now and then.

        options:
          --url URL         a weather service that runs already; by default one is started and ended
          --client LIST     some of urlsession, async-http-client, generated (default: all whose traits are on)
          --users N         people at once (default 4)
          --rounds N        how often each of them looks (default 5)
          --pause-ms N      time between two looks (default 1100)
          --delay-ms N      time that the started service takes for an answer (default 30)
          --quick           2 rounds
          --json            print the table as JSON, and nothing else, to standard output
          --help            print this

        columns:
          requests      what the service saw
          bytes         bytes of content that it sent
          304s, 429s    answers of these kinds that it gave
          failed        calls that ended in an error or a status of 400 or more
          time          of the whole job, the pauses included
          bytes saved   bytes of content that came from the cache
          time saved    waiting for the service that hits of the cache spared, summed over all calls

        exit status: 0 when the runs were made, whatever they showed; 64 for a wrong command line, or for a named client
        whose trait is off; 1 when there is no service
        """
}

/// Status 64 stands for a trait that is off as well.
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
