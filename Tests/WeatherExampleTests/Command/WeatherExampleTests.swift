// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import Testing

@testable import WeatherExample
@testable import WeatherService

@Suite("The command weather-example", .timeLimit(.minutes(20)))
struct WeatherExampleTests {
    static let job = ["--users", "1", "--rounds", "2", "--pause-ms", "0"]

    struct Printed: Decodable {
        struct Row: Decodable {
            let `case`: String
            let subject: String
            let value: Double
            let unit: String
        }
        struct Skipped: Decodable {
            let client: String
            let needs: String
        }
        let results: [Row]
        let skipped: [Skipped]
    }

    @Test(
        "An invalid command line gives one line on standard error and status 64",
        arguments: [
            ["--nonsense"], ["word"], ["--users"], ["--users", "0"], ["--users=x"], ["--rounds", "-1"], ["--url"],
            ["--url", "ftp://h"], ["--url", "http://"], ["--client", "curl"], ["--client", ""], ["--json=1"],
            ["--pause-ms", "1.5"],
        ]
    )
    func usage(_ words: [String]) async {
        let recording = RecordedConsole()
        #expect(await WeatherExample.run(words, on: recording.console) == 64)
        #expect(recording.output.isEmpty)
        #expect(recording.error.hasPrefix("weather-example: "))
        #expect(recording.error.filter(\.isNewline).count == 1)
    }

    @Test("Help names each option and sends nothing")
    func help() async {
        let recording = RecordedConsole()
        #expect(await WeatherExample.run(["--help"], on: recording.console) == 0)
        for option in ["--url", "--client", "--users", "--rounds", "--pause-ms", "--delay-ms", "--quick", "--json"] {
            #expect(recording.output.contains(option))
        }
    }

    @Test("Defaults, and what --quick changes")
    func defaults() throws {
        let plain = try Arguments(parsing: [])
        #expect(plain.users == 4 && plain.rounds == 5 && plain.delay == 30 && plain.clients == ClientKind.allCases)
        #expect(try Arguments(parsing: ["--quick"]).rounds == 2)
        #expect(try Arguments(parsing: ["--quick", "--rounds=9"]).rounds == 9)
        #expect(try Arguments(parsing: ["--client", "generated,urlsession"]).clients == [.generated, .urlSession])
    }

    @Test("A client whose trait is off is named with the trait: status 64 if it was requested")
    func missingTraits() async {
        for kind in ClientKind.allCases {
            guard let trait = kind.missingTrait else { continue }
            let recording = RecordedConsole()
            #expect(await WeatherExample.run(["--client", kind.rawValue], on: recording.console) == 64)
            #expect(recording.error.contains("--traits \(trait)"))
        }
    }

    @Test("With a service that is already running: a table with a row for each run")
    func table() async throws {
        let service = try RunningService { $0.capacity = 10_000 }
        defer { service.stop() }
        let recording = RecordedConsole()
        let words = Self.job + ["--url", service.url.absoluteString + "/"]
        #expect(await WeatherExample.run(words, on: recording.console) == 0, "\(recording.error)")
        let lines = recording.output.split(separator: "\n")
        let present = ClientKind.allCases.filter { $0.missingTrait == nil }
        #expect(lines.count == 1 + 2 * present.count + (ClientKind.allCases.count - present.count))
        #expect(lines.first?.hasPrefix("client") == true)
        #expect(lines.dropFirst().first?.contains(" before ") == true)
    }

    @Test("Without --url it starts the service itself and prints JSON that can be parsed")
    func child() async throws {
        let recording = RecordedConsole()
        let words = Self.job + ["--json", "--delay-ms", "0", "--client", "urlsession"]
        let status = await WeatherExample.run(words, on: recording.console, program: BuiltProgram.url("WeatherService"))
        #expect(status == 0, "\(recording.error)")
        let printed = try JSONDecoder().decode(Printed.self, from: Data(recording.output.utf8))
        func value(_ name: String, _ side: String) -> Double? {
            printed.results.first { $0.case == "urlsession-\(name)" && $0.subject == side }?.value
        }
        #expect(value("calls", "before") == 50)
        #expect(value("requests", "before") == 50)
        #expect(value("calls", "after") == 50)
        #expect(try #require(value("requests", "after")) < 50)
        #expect(value("bytes-saved", "before") == 0)
        #expect(try #require(value("bytes-saved", "after")) > 0)
        #expect(printed.skipped.isEmpty)
    }

    @Test("A service that cannot be started gives one line and status 1")
    func noProgram() async {
        let recording = RecordedConsole()
        let nowhere = URL(filePath: "/nowhere/WeatherService")
        #expect(await WeatherExample.run(Self.job, on: recording.console, program: nowhere) == 1)
        #expect(recording.error.filter(\.isNewline).count == 1)
    }
}
