// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    import HoldfastObservability
    import HoldfastTesting
    import InMemoryLogging
    import Logging
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite(.timeLimit(.minutes(20))) struct EventLogTests {
        @Test("A retried call logs a notice for each retry, and its end is logged with its source")
        func retried() async throws {
            let bench = ObservedPipeline([.respond(503), .respond()])
            try await bench.get("https://example.com/a", operation: "getForecast")
            let retry = try #require(bench.logs.entries.first { $0.message == "retry scheduled" })
            #expect(retry.level == .notice)
            #expect(retry.metadata["retry.class"] == "ambiguous")
            #expect(retry.metadata["status"] == "503")
            #expect(retry.metadata["attempt"] == "1")
            #expect(retry.metadata["host"] == "example.com")
            #expect(retry.metadata["operation"] == "getForecast")
            #expect(retry.metadata["url"] == nil)
            let end = try #require(bench.logs.entries.first { $0.message == "call ended" })
            #expect(end.level == .debug)
            #expect(end.metadata["source"] == "network")
        }

        @Test("A failed call logs an error with its code and message; a cancelled one does not")
        func failed() async throws {
            let bench = ObservedPipeline([.fail(.tls, progress: .notSent)], retrierFactory: .never)
            await #expect(throws: ServiceError.self) { try await bench.get("https://example.com/a") }
            let failure = try #require(bench.logs.entries.first { $0.level == .error })
            #expect(failure.metadata["error.code"] == "tls")
            #expect(failure.metadata["error.message"] == "scripted")
            #expect(failure.metadata["progress"] == "not-sent")

            let cancelled = ObservedPipeline([.fail(CancellationError())])
            await #expect(throws: CancellationError.self) { try await cancelled.get("https://example.com/a") }
            #expect(!cancelled.logs.entries.contains { $0.level >= .warning })
            #expect(cancelled.logs.entries.contains { $0.message == "call cancelled" })
        }

        @Test("A cache decision is logged with the clause of its rule")
        func cached() async throws {
            let bench = ObservedPipeline(
                [.respond(200, ["Cache-Control": "max-age=60"], body: "x")],
                cache: .inMemory()
            )
            for _ in 0..<2 { try await bench.get("https://example.com/a") }
            let decisions = bench.logs.entries.filter { $0.message == "cache decided" }
            #expect(decisions.map { $0.metadata["cache.outcome"] } == ["miss", "hit"])
            #expect(decisions.last?.metadata["cache.reason"] == "fresh (RFC 9111 §4.2)")
        }

        @Test("A final response with an error status, such as 404, is not a warning")
        func notFound() async throws {
            let bench = ObservedPipeline([.respond(404)])
            try await bench.get("https://example.com/a")
            #expect(!bench.logs.entries.contains { $0.level >= .notice })
        }

        @Test("Nothing is logged if the logger's level is higher")
        func level() async throws {
            let handler = InMemoryLogHandler()
            var logger = Logger(label: "holdfast") { _ in handler }
            logger.logLevel = .warning
            var configuration = PipelineConfiguration()
            configuration.observe(with: PipelineObserver(logger: logger))
            let pipeline = Pipeline(transport: ScriptedTransport([.respond()]), configuration: configuration)
            _ = try await pipeline.send(URLRequest(url: try #require(URL(string: "https://example.com/"))))
            #expect(handler.entries.isEmpty)
        }

        @Test(
            "Beginnings are logged one level below decisions, if there is one",
            arguments: [(Logger.Level.notice, Logger.Level.info), (.debug, .trace), (.trace, .trace)]
        )
        func beginnings(_ decisions: Logger.Level, _ beginnings: Logger.Level) async throws {
            var options = ObserverOptions()
            options.decisionLevel = decisions
            let bench = ObservedPipeline(options: options)
            try await bench.get("https://example.com/a")
            for (message, level) in [("call started", beginnings), ("call ended", decisions)] {
                #expect(bench.logs.entries.first { "\($0.message)" == message }?.level == level)
            }
        }

        @Test("With URLs, only the path, the argument names and the permitted values are logged")
        func urls() async throws {
            var options = ObserverOptions()
            options.logsURLs = true
            options.shownArguments = ["page"]
            let bench = ObservedPipeline(options: options)
            try await bench.get("https://u:p@example.com/a/b?page=2&key=x#y")
            let url = "https://example.com/a/b?page=2&key=REDACTED"
            #expect(bench.logs.entries.allSatisfy { $0.metadata["url"] == "\(url)" })
        }

        @Test("Nor is it one in a pipeline without retries")
        func notFoundWithoutRetries() async throws {
            let bench = ObservedPipeline([.respond(404)], retrierFactory: .never)
            try await bench.get("https://example.com/a")
            #expect(!bench.logs.entries.contains { $0.level >= .notice })
        }
    }
#endif
