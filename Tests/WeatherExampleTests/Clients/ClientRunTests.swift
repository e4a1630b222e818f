// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastCommand
import HoldfastTesting
import Testing

@testable import WeatherExample
@testable import WeatherService

@Suite("The dashboard with each client", .timeLimit(.minutes(20)))
struct ClientRunTests {
    static let clients = ClientKind.allCases.filter { $0.missingTrait == nil }

    func run(_ kind: ClientKind, _ side: ClientRun.Side, _ dashboard: Dashboard, at url: URL) async throws -> RunResult
    {
        try await ClientRun(kind: kind, side: side, url: url, dashboard: dashboard).perform()
    }

    @Test(
        "After the one-line change fewer than half of the requests remain, no call fails, and the data is the same",
        arguments: clients
    )
    func promise(_ kind: ClientKind) async throws {
        let service = try RunningService {
            $0.currentAge = 60
            $0.capacity = 150
            $0.refill = 0
            // So seldom that no second call fails while the first one waits: the budget lets one retry fly at first.
            $0.failEvery = 60
        }
        defer { service.stop() }
        let dashboard = Dashboard(users: 3, rounds: 3) {}
        let before = try await run(kind, .before, dashboard, at: service.url)
        let after = try await run(kind, .after, dashboard, at: service.url)
        #expect(before.outcome.calls == 3 * 3 * 25)
        #expect(before.ledger.requests == before.outcome.calls)
        #expect(before.ledger.tooManyRequests == 75)
        #expect(before.outcome.failed == 75 + before.ledger.unavailable)
        #expect(before.ledger.unavailable > 0)
        #expect(after.outcome.calls == before.outcome.calls)
        #expect(after.outcome.failed == 0)
        #expect(after.ledger.requests * 2 < before.ledger.requests)
        #expect(after.ledger.unavailable > 0)
        #expect(after.ledger.bytes * 2 < before.ledger.bytes)
        #expect(after.bytesSaved > 0)
        #expect(after.outcome.answers.count == 2 * 25)
        #expect(after.outcome.contradictions == 0)
        #expect(before.outcome.answers.allSatisfy { after.outcome.answers[$0.key] == $0.value })
    }

    @Test("A stale response is revalidated by its ETag, and a 304 brings no bytes", arguments: clients)
    func revalidation(_ kind: ClientKind) async throws {
        let service = try RunningService {
            $0.currentAge = 0
            $0.capacity = 1_000
        }
        defer { service.stop() }
        let dashboard = Dashboard(users: 1, rounds: 3) {}
        let before = try await run(kind, .before, dashboard, at: service.url)
        let after = try await run(kind, .after, dashboard, at: service.url)
        #expect(before.ledger.requests == 75)
        #expect(before.ledger.notModified == 0)
        #expect(after.ledger.requests == 1 + 16 + 3 * 8)
        #expect(after.ledger.notModified == 2 * 8)
        #expect(after.outcome.failed == 0)
        #expect(before.outcome.answers == after.outcome.answers)
        #expect(after.ledger.bytes * 2 < before.ledger.bytes)
    }

    @Test("Without a service the run ends with the reason")
    func noService() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:\(try LoopbackServer.refusingPort())"))
        let dashboard = Dashboard(users: 1, rounds: 1) {}
        let error = await #expect(throws: CommandFailure.self) {
            try await run(.urlSession, .before, dashboard, at: url)
        }
        #expect(error?.exitStatus == 1)
    }

    @Test(
        "Before and after are two functions that differ in one line",
        arguments: ["Session", "AsyncClient", "Generated"]
    )
    func oneLine(_ name: String) throws {
        let file = ExampleSources.root.appending(path: "Sources/WeatherExample/Clients/\(name)Weather.swift")
        let text = try String(contentsOf: file, encoding: .utf8)
        let before = try #require(ExampleSources.body(of: "readBefore", in: text))
        let after = try #require(ExampleSources.body(of: "readAfter", in: text))
        #expect(before.count == after.count)
        #expect(zip(before, after).filter { $0 != $1 }.count == 1)
    }

    @Test("Each line of the page's comparisons is in the example")
    func page() throws {
        let page = try String(
            contentsOf: ExampleSources.root.appending(path: "docs/clients/weather-example.md"),
            encoding: .utf8
        )
        var sources = ""
        for name in ["Session", "AsyncClient", "Generated"] {
            let file = ExampleSources.root.appending(path: "Sources/WeatherExample/Clients/\(name)Weather.swift")
            sources += try String(contentsOf: file, encoding: .utf8)
        }
        let lines = Set(sources.split(separator: "\n").map { $0.drop { $0 == " " } })
        let quoted = ExampleSources.comparedLines(of: page)
        #expect(quoted.count(where: { $0.hasPrefix("-") }) == 3)
        #expect(quoted.count(where: { $0.hasPrefix("+") }) == 3)
        for line in quoted {
            #expect(lines.contains(line.dropFirst().drop { $0 == " " }), "\(line)")
        }
    }
}

/// The files of the example, as they lie beside the tests.
private enum ExampleSources {
    static var root: URL {
        var url = URL(filePath: #filePath).resolvingSymlinksInPath()
        while url.lastPathComponent != "Tests" { url.deleteLastPathComponent() }
        return url.deletingLastPathComponent()
    }

    /// The lines within a function's braces.
    static func body(of function: String, in text: String) -> [Substring]? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.firstIndex(where: { $0.contains("func \(function)(") }) else { return nil }
        let end = String(lines[first].prefix { $0 == " " }) + "}"
        return Array(lines[(first + 1)...].prefix { $0 != end })
    }

    /// The lines of all blocks fenced as diff.
    static func comparedLines(of page: String) -> [Substring] {
        var isInside = false
        return page.split(separator: "\n").filter { line in
            if line.hasPrefix("```") {
                isInside = line == "```diff"
                return false
            }
            return isInside
        }
    }
}
