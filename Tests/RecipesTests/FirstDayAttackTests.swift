// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What an attack from outside found in the promises of the first day.
@Suite("The first day, under stress", .timeLimit(.minutes(20)))
struct FirstDayAttackTests {
    private func request(_ path: String = "/a") throws -> URLRequest {
        URLRequest(url: try #require(URL(string: "http://user:SECRET@origin.example\(path)")))
    }

    @Test("Progress updates end if no content comes: after a failure, a cancelled call or a hook's response")
    func progressEnds() async throws {
        let clients = [
            Pipeline(transport: ScriptedTransport([.fail(.connect, progress: .notSent)])),
            Pipeline(transport: ScriptedTransport([.fail(CancellationError())])),
            Pipeline(
                transport: ScriptedTransport([]),
                hooks: [.closures(onSchedule: { _, _ in throw CancellationError() })]
            ),
        ]
        for client in clients {
            var options = CallOptions()
            let progress = TransferProgress()
            options.progress = progress
            _ = try? await client.data(for: request(), options: options)
            for await _ in progress.updates {}
        }
        var options = CallOptions()
        let progress = TransferProgress()
        options.progress = progress
        let answering = Pipeline(
            transport: ScriptedTransport([]),
            hooks: [.closures(onSchedule: { _, _ in .text("pong") })]
        )
        _ = try await answering.data(for: request(), options: options)
        for await _ in progress.updates {}
        #expect(progress.current == TransferProgress.Update(completed: 4, total: 4))
    }

    @Test("A prefetch to a disk stores bodies whose total exceeds the memory for writers")
    func prefetchOfLargeBodies() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("prefetch-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let cache = try await HTTPCache.onDisk(at: folder, capacity: 8 << 20)
        let body = [UInt8](repeating: 7, count: 800_000)
        let server = try LoopbackServer.start { _ in
            LoopbackReply(fields: [("Cache-Control", "max-age=60")], bytes: body)
        }
        let client = Pipeline(transport: URLSessionTransport(), cache: cache)
        let report = await client.prefetch((0..<6).map { URLRequest(url: server.url("/\($0)")) })
        #expect(report.availableCount == 6, "\(report.items.map(\.outcome))")
        await client.drain()
        await cache.close()
    }

    @Test("A prefetch redirected by an unstorable response reports the result of the last one")
    func redirectedPrefetch() async throws {
        let transport = ScriptedTransport([
            .respond(302, ["Location": "/b"]),
            .stream(200, ["Cache-Control": "max-age=60"], chunks: ["x"]),
        ])
        let report = await Pipeline(transport: transport, cache: .inMemory()).prefetch([try request()])
        #expect(report.availableCount == 1, "\(report.items.map(\.outcome))")
    }

    @Test("Each response that is not kept is counted and reported: left, broken off, rejected, too large")
    func notKept() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let fields: HeaderFields = ["Cache-Control": "max-age=60"]
        let transport = ScriptedTransport([
            .stream(200, fields, chunks: ["a", "b"]),
            .stream(200, fields, chunks: ["a"], failure: ServiceError(.connectionLost, "Broken.")),
            .respond(404, fields, body: "x"),
            .stream(200, fields, chunks: [String](repeating: String(repeating: "x", count: 1000), count: 8)),
        ])
        let cache = HTTPCache.inMemory(entryLimit: 4000)
        let client = Pipeline(transport: transport, cache: cache, configuration: configuration)
        try await client.send(request("/left")).body.discard()
        _ = try? await client.data(for: request("/broken"))
        var options = CallOptions()
        options.acceptance = .successful
        _ = try? await client.data(for: request("/rejected"), options: options)
        _ = try await client.data(for: request("/large"))
        await client.drain()
        #expect(cache.statistics.notStored == [.incomplete: 2, .notAccepted: 1, .tooLarge: 1])
        #expect(
            recorder.events(.responseNotStored).compactMap(\.notStoredReason)
                == [.incomplete, .incomplete, .notAccepted, .tooLarge]
        )
        #expect(cache.statistics.stored == 0)
    }

    private struct Leaky: Error, CustomStringConvertible {
        let description = "http://user:SECRET@origin.example"
    }

    private func dumped(_ value: some Any) -> String {
        var text = ""
        dump(value, to: &text)
        return text
    }

    @Test("Neither print nor dump of an event, an error or a response shows a credential")
    func shown() async throws {
        let recorder = EventRecorder()
        var configuration = PipelineConfiguration()
        configuration.observers = [recorder]
        let underlying = URLError(
            .cannotConnectToHost,
            userInfo: ["NSErrorFailingURLStringKey": "http://user:SECRET@origin.example"]
        )
        let transport = ScriptedTransport([
            .fail(ServiceError(.connect, "Refused.", cause: underlying)), .fail(underlying), .fail(Leaky()),
            .respond(200, ["Set-Cookie": "SECRET"]),
        ])
        let client = Pipeline(transport: transport, configuration: configuration)
        var texts: [String] = []
        for _ in 1...3 {
            do {
                _ = try await client.send(request("/a?token=SECRET"))
            } catch let error as ServiceError {
                texts.append(dumped(error))
                texts.append("\(error)")
            } catch {}
        }
        texts.append(dumped(try await client.send(request("/a?token=SECRET"))))
        for event in recorder.events {
            texts.append(dumped(event))
            texts.append("\(event)")
        }
        #expect(texts.count > 10)
        for text in texts { #expect(!text.contains("SECRET") && !text.contains("unknown context"), "\(text)") }
    }

    @Test("Neither print nor dump of a prefetch's report shows a credential; each of its items is one line")
    func shownReport() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Cache-Control": "max-age=60"]), .respond(404, ["Cache-Control": "no-store"]),
            .fail(.connect, progress: .notSent),
        ])
        let client = Pipeline(transport: transport, cache: .inMemory())
        let requests = try (1...3).map { try request("/\($0)?token=SECRET") } + [try request("/1?token=SECRET")]
        let report = await client.prefetch(requests, concurrency: 1)
        for text in ["\(report)", dumped(report)] + report.items.map({ "\($0)" }) {
            #expect(!text.contains("SECRET"), "\(text)")
        }
        let lines = report.items.map { "\($0)" }
        let start = "GET http://origin.example"
        #expect(lines[0] == "\(start)/1?token=REDACTED: 200, stored")
        #expect(lines[1] == "\(start)/2?token=REDACTED: 404, not stored: response-no-store (RFC 9111 §5.2.2.5)")
        #expect(lines[2].hasPrefix("\(start)/3?token=REDACTED: failed: "))
        #expect(lines[3] == "\(start)/1?token=REDACTED: 200, already stored")
    }

    @Test("An attempt prints as one line: its result, how long it took, and what followed")
    func shownAttempts() async throws {
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let client = Pipeline(
            transport: ScriptedTransport([.respond(503), .fail(.connect, progress: .notSent), .respond(404)]),
            retrierFactory: .backoff(RetryRules(backoff: Backoff(base: .milliseconds(50), jitter: .none))),
            configuration: configuration
        )
        let attempts = try await client.send(request()).attempts
        #expect(
            attempts.map(\.description) == [
                "attempt 1: 503 in 0.0 seconds, the next after 0.05 seconds",
                "attempt 2: connect in 0.0 seconds, the next after 0.1 seconds",
                "attempt 3: 404 in 0.0 seconds, then none: not-retryable",
            ]
        )
    }

    @Test("A single call at a healthy origin makes as many attempts as `.backoff` says", arguments: [2, 4, 5])
    func attempts(count: Int) async throws {
        for _ in 1...100 { try await makesAttempts(count) }
    }

    /// The jitter of its waits is another one each time.
    private func makesAttempts(_ count: Int) async throws {
        let transport = ScriptedTransport([.respond(503)], repeatsLastStep: true)
        let clock = ManualClock(autoAdvances: true)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let client = Pipeline(
            transport: transport,
            retrierFactory: .backoff(
                base: .milliseconds(50),
                cap: .seconds(2),
                attempts: count,
                retry: [429, 503],
                methods: [.get]
            ),
            configuration: configuration
        )
        #expect(try await client.send(request()).attempts.count == count)
    }

    @Test("After a redirect the error names the URL that failed, and a hook sees the call's name as its caller does")
    func redirected() async throws {
        let seen = Mutex<[String]>([])
        let transport = ScriptedTransport([
            .respond(302, ["Location": "http://other.example/b?k=SECRET"]), .fail(.connect, progress: .notSent),
        ])
        let client = Pipeline(
            transport: transport,
            hooks: [
                .closures(onFailure: { error, _, _ in
                    seen.withLock { $0.append("\(error)") }
                    return nil
                })
            ]
        )
        let error = await #expect(throws: ServiceError.self) { try await client.send(try request()) }
        #expect(error?.errorDescription?.hasPrefix("GET http://other.example/b?k=REDACTED: ") == true)
        #expect(error?.attempts.count == 2)
        #expect(seen.withLock { $0 } == [error.map { "\($0)" }])
    }

    @Test("An attempt and a context print and dump in one line, without credentials")
    func printed() async throws {
        let seen = Mutex<[String]>([])
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        @Sendable func note(_ value: Any) {
            var dumped = ""
            dump(value, to: &dumped)
            seen.withLock { $0 += ["\(value)", dumped] }
        }
        let client = Pipeline(
            transport: ScriptedTransport([
                .respond(503, ["Set-Cookie": "s=SECRET"]), .fail(.connect, progress: .notSent), .respond(200),
            ]),
            retrierFactory: .backoff(base: .milliseconds(1), cap: .milliseconds(2), attempts: 3) { attempt in
                note(attempt)
                return true
            },
            hooks: [
                .closures(onSchedule: { _, context in
                    note(context)
                    return nil
                })
            ],
            configuration: configuration
        )
        var call = try request()
        call.setValue("Bearer SECRET", forHTTPHeaderField: "Authorization")
        var options = CallOptions()
        options.principal = "SECRET"
        #expect(try await client.send(call, options: options).status == .ok)
        let lines = seen.withLock { $0 }
        #expect(lines.count == 6 && lines[0].hasPrefix("call ") && lines[2].hasPrefix("attempt 1: 503"))
        #expect(!lines.contains { $0.contains("SECRET") || $0.contains("unknown context") }, "\(lines)")
    }

    @Test("A file that cannot be uploaded, and a service proxy's error response, name the call")
    func named() async throws {
        let client = Pipeline(transport: ScriptedTransport([.respond(404)]))
        let upload = await #expect(throws: ServiceError.self) {
            try await client.upload(for: try request(), fromFile: URL(fileURLWithPath: "/does/not/exist"))
        }
        #expect(upload?.errorDescription?.hasPrefix("GET http://origin.example/a: The file to upload") == true)
        let base = try #require(URL(string: "https://api.example/v1"))
        let proxy = WebServiceProxy(transport: ScriptedTransport([.respond(404)]), baseURL: base)
        let refused = await #expect(throws: WebServiceError.self) {
            let _: [Int] = try await proxy.invoke(.get, path: "a")
        }
        #expect(refused.map { "\($0)" } == "GET https://api.example/v1/a: status 404: Not Found")
    }
}
