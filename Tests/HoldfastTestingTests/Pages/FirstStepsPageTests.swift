// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSimulation
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the program of the page has printed, line by line.
private let printed = Mutex<[String]>([])

/// Prints as the standard library does, but so that what the code of the page prints can be compared with the page.
private func print(_ items: Any..., separator: String = " ", terminator: String = "\n") {
    let line = items.map { "\($0)" }.joined(separator: separator)
    printed.withLock { $0.append(line) }
}

/// Gives each call a name that the server can log, and prints how the call ended.
struct NamingHook: ServiceHook {
    let prefix: String

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        request.setValue("\(prefix)-\(context.callID.number)", forHTTPHeaderField: "X-Request-ID")
        return nil
    }

    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        print(request.value(forHTTPHeaderField: "X-Request-ID") ?? "", response.status, response.source)
    }

    func onFailure(_ error: any Error, _ request: URLRequest, _ context: inout CallContext) async -> Response? {
        print(request.value(forHTTPHeaderField: "X-Request-ID") ?? "", error)
        return nil
    }
}

/// Sends a call again that the server answered with a 503: twice at most, after a wait that grows.
struct PersistentRetrier: Retrier {
    let allowsMultipleRetries = true

    func retry(_ request: URLRequest, after attempt: FailedAttempt, context: CallContext) async -> RetryDecision {
        guard attempt.response?.status == .serviceUnavailable, attempt.exchange.method.isIdempotent else {
            return .stop(.notRetryable)
        }
        return attempt.number > 2 ? .stop(.attemptsExhausted) : .retry(after: .milliseconds(20 * attempt.number))
    }

    struct Factory: RetrierFactory {
        let governor: RetryGovernor?

        func create(for request: URLRequest) -> any Retrier { PersistentRetrier() }
    }
}

/// The code of docs/first-steps.md from top to bottom, and that of docs/extending/writing-a-hook.md.
@Suite("docs/first-steps.md", .timeLimit(.minutes(20)))
struct FirstStepsPageTests {
    /// The lines that a page shows as printed.
    private static func console(of page: String) throws -> [String] {
        var docs = URL(filePath: #filePath)
        for _ in 1...4 { docs.deleteLastPathComponent() }
        let text = try String(contentsOf: docs.appending(path: "docs/\(page)"), encoding: .utf8)
        return text.matches(of: /```console\n([^`]*)```/).flatMap { block in
            block.output.1.split(separator: "\n").map { String($0) }
        }
    }

    /// Lines as a process prints them in which no other calls run: the first call with a hook is the second with a number.
    private static func alone(_ lines: [String]) -> [String] {
        let numbers = lines.flatMap { line in line.matches(of: /walk-(\d+)/).compactMap { Int($0.output.1) } }
        let ordered = Set(numbers).sorted()
        return lines.map { line in
            line.replacing(/walk-(\d+)/) { match -> String in
                let place = ordered.firstIndex { "\($0)" == match.output.1 } ?? 0
                return "walk-\(2 + place)"
            }
        }
    }

    @Test("The walkthrough does what the page says, and prints what it shows")
    func walk() async throws {
        let server = try LoopbackServer.start { request in
            LoopbackReply(fields: [("Cache-Control", "max-age=3600")], body: "hello from \(request.path)")
        }
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)

        for _ in 1...2 {
            let response = try await client.send(URLRequest(url: server.url("/greeting")))
            let text = String(decoding: try await response.body.data(), as: UTF8.self)
            print(text, "|", response.source, "|", response.cacheDecision?.description ?? "")
        }
        print("arrived: \(server.requests.count), hit ratio: \(cache.statistics.hitRatio)")
        #expect(server.requests.count == 1 && cache.statistics.hitRatio == 0.5)

        let hooked = Pipeline(transport: URLSessionTransport(), cache: cache, hooks: [NamingHook(prefix: "walk")])
        _ = try await hooked.data(for: URLRequest(url: server.url("/greeting")))
        _ = try await hooked.data(for: URLRequest(url: server.url("/farewell")))
        print("the server saw:", server.requests.last?.values(of: "X-Request-ID") ?? [])
        #expect(server.requests.map(\.path) == ["/greeting", "/farewell"])
        #expect(server.requests.last?.values(of: "X-Request-ID").count == 1)

        let tired = try LoopbackServer.start { request in
            request.number < 2 ? LoopbackReply(503) : LoopbackReply(body: "awake")
        }
        let retrying = Pipeline(
            transport: URLSessionTransport(),
            retrierFactory: PersistentRetrier.Factory(governor: RetryGovernor())
        )
        let answer = try await retrying.send(URLRequest(url: tired.url()))
        for attempt in answer.attempts {
            print(attempt.number, attempt.status ?? 0, attempt.delay ?? .zero)
        }
        #expect(answer.attempts.map(\.status) == [503, 503, 200])

        var outage = StormScenario.outage.scaled(to: 0.1)
        outage.seeds = [1]
        let free = try await Storm(outage).run { _, _ in PersistentRetrier.Factory(governor: nil) }
        let bound = try await Storm(outage).run { _, seed in
            PersistentRetrier.Factory(governor: RetryGovernor(generator: SeededGenerator(seed: seed)))
        }
        let preset = try await Storm(outage).run(.default)
        for (name, reports) in [("without a budget", free), ("with one", bound), ("the default", preset)] {
            let (load, success) = (reports.figures.loadInFault ?? 0, reports.figures.success)
            print(name, String(format: "%.2f", load), String(format: "%.2f", success))
        }
        #expect((free.figures.loadInFault ?? 0) > 2.9)
        #expect((bound.figures.loadInFault ?? 9) < 1.2 && (preset.figures.loadInFault ?? 9) < 1.2)

        let stopwatch = ContinuousClock()
        for (name, client) in [("bare", Pipeline(transport: URLSessionTransport())), ("cached", client)] {
            let time = try await stopwatch.measure {
                for _ in 0..<200 { _ = try await client.data(for: URLRequest(url: server.url("/greeting"))) }
            }
            print(name, time / 200)
        }
        #expect(server.requests.count == 202)

        // The last two lines are times.
        let lines = Self.alone(printed.withLock { Array($0.dropLast(2)) })
        let page = try Self.console(of: "first-steps.md")
        #expect(lines == page)
        let hookPage = try Self.console(of: "extending/writing-a-hook.md")
        #expect(Array(lines.dropFirst(3).prefix(2)) == hookPage)
    }
}
