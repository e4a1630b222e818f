// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What people try first takes a line or two, and the defaults need no manual.
@Suite("The first day: a line or two, and defaults without a manual", .timeLimit(.minutes(20)))
struct FirstLinesTests {
    private let clock = ManualClock()

    private func request(_ path: String = "/a") throws -> URLRequest {
        URLRequest(url: try #require(URL(string: "http://origin.example\(path)")))
    }

    private var configuration: PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        return configuration
    }

    // MARK: Closures and answers

    @Test("Three closures make a hook, and each is optional")
    func closures() async throws {
        let seen = Mutex<[String]>([])
        let client = Pipeline(
            transport: ScriptedTransport([.respond(body: "x"), .fail(progress: .notSent)]),
            hooks: [
                .closures(
                    onSchedule: { request, _ in
                        seen.withLock { $0.append("schedule \(request.url?.path ?? "")") }
                        return request.url?.path == "/ping" ? .text("pong") : nil
                    },
                    onSuccess: { response, _, _ in seen.withLock { $0.append("success \(response.status)") } },
                    onFailure: { error, _, _ in
                        seen.withLock { $0.append("failure \((error as? ServiceError)?.code.description ?? "")") }
                        return nil
                    }
                ),
                .closures(),
            ]
        )
        #expect(try await client.data(for: request("/ping")).0 == Data("pong".utf8))
        _ = try await client.data(for: request("/a"))
        _ = await failure { _ = try await client.data(for: try request("/b")) }
        #expect(
            seen.withLock { $0 } == [
                "schedule /ping", "schedule /a", "success 200", "schedule /b", "failure connection-lost",
            ]
        )
    }

    @Test("Responses made of text, JSON and bytes have their type and length")
    func answers() async throws {
        let text = Response.text("héllo", status: .created)
        #expect(text.status == .created && text.fields[.contentType] == "text/plain; charset=utf-8")
        #expect(text.fields[.contentLength] == "6" && text.source == .synthesized)
        let json = try Response.json(["a": 1])
        #expect(try await json.body.data() == Data(#"{"a":1}"#.utf8))
        #expect(json.fields[.contentType] == "application/json")
        let data = Response.data(Data([1, 2]), contentType: "image/png", status: .ok)
        #expect(try await data.body.data() == Data([1, 2]) && data.fields[.contentType] == "image/png")
    }

    // MARK: Backoff

    @Test("`.backoff` with a base uses it after every failure, throttling included", arguments: [429, 503])
    func backoff(status: Int) async throws {
        let recorder = EventRecorder()
        var configuration = configuration
        configuration.observers = [recorder]
        let client = Pipeline(
            transport: ScriptedTransport([.respond(status)], repeatsLastStep: true),
            retrierFactory: .backoff(base: .milliseconds(50), cap: .milliseconds(150), attempts: 4, retry: [429, 503]),
            configuration: configuration
        )
        let call = Task { try await client.send(try request()) }
        let time = Task {
            while !Task.isCancelled {
                clock.advance(by: .milliseconds(10))
                await Task.yield()
            }
        }
        #expect(try await call.value.attempts.count == 4)
        time.cancel()
        let waits = recorder.events(.retryScheduled).compactMap(\.delay)
        for (wait, longest) in zip(waits, [50, 100, 150]) {
            #expect(wait <= .milliseconds(longest))
        }
        #expect(waits.count == 3)
    }

    @Test("A condition in the same call also decides")
    func condition() async throws {
        let transport = ScriptedTransport([.respond(503), .respond(200), .respond(503)])
        let client = Pipeline(
            transport: transport,
            retrierFactory: .backoff(base: .zero, if: { $0.response?.url?.path != "/never" })
        )
        #expect(try await client.send(request("/a")).attempts.count == 2)
        #expect(try await client.send(request("/never")).attempts.count == 1)
    }

    // MARK: Caches

    @Test("The default cache is always the same cache")
    func defaultCache() {
        #expect(HTTPCache.default === HTTPCache.default)
    }

    @Test("The limit for one response can be set for a cache in memory, on disk, or both")
    func entryLimits() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("limits-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let caches = [
            HTTPCache.inMemory(capacity: 4 << 20, entryLimit: 2 << 20),
            try await HTTPCache.onDisk(at: folder.appendingPathComponent("a"), capacity: 4 << 20, entryLimit: 2 << 20),
            try await HTTPCache.tiered(
                at: folder.appendingPathComponent("b"),
                memory: 4 << 20,
                capacity: 4 << 20,
                entryLimit: 2 << 20
            ),
        ]
        for cache in caches {
            let sizes = [1_500_000, 3_000_000]
            let transport = ScriptedTransport(
                sizes.map { .respond(200, ["Cache-Control": "max-age=60"], body: String(repeating: "x", count: $0)) }
            )
            let client = Pipeline(transport: transport, cache: cache)
            #expect(try await client.send(request("/small")).cacheDecision?.storage == .stored)
            #expect(try await client.send(request("/large")).cacheDecision?.storage == .notStored(.tooLarge))
            await cache.close()
        }
    }

    @Test("A text prefix removes what begins with it, and a path ends at its segment")
    func prefixes() async throws {
        let paths = ["/max/pre", "/max/pre0", "/max/pre/x", "/max/other"]
        let cache = HTTPCache.inMemory()
        let client = Pipeline(
            transport: ScriptedTransport(
                Array(repeating: .respond(200, ["Cache-Control": "max-age=60"]), count: paths.count * 2)
            ),
            cache: cache
        )
        for path in paths { _ = try await client.send(request(path)) }
        #expect(try await cache.remove(.prefix("/max/pre")) == 3)
        for path in paths { _ = try await client.send(request(path)) }
        #expect(try await cache.remove(.path(#require(URL(string: "http://origin.example/max/pre")))) == 2)
    }

    @Test(
        "A prefix may be written as a person reads it, with spaces and letters outside ASCII",
        arguments: ["/my file", "/my%20fi", "http://origin.example/my file", "/é t"]
    )
    func readablePrefix(text: String) async throws {
        let cache = HTTPCache.inMemory()
        let answer = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"])
        let client = Pipeline(transport: ScriptedTransport([answer, answer]), cache: cache)
        for path in ["/my%20file1", "/%C3%A9%20t"] { _ = try await client.send(request(path)) }
        #expect(try await cache.remove(.prefix(text)) == 1)
    }

    // MARK: Progress

    @Test("Progress with a total, from the network and the cache, as a sequence and as Foundation's Progress")
    func progress() async throws {
        let transport = ScriptedTransport([
            .stream(200, ["Cache-Control": "max-age=60"], chunks: ["abc", "de"], length: 5),
            .stream(200, ["Content-Length": "5"], chunks: ["abc"], failure: ServiceError(.connectionLost, "Broken.")),
        ])
        let client = Pipeline(transport: transport, cache: .inMemory())
        for source in ["network", "cache"] {
            var options = CallOptions()
            let progress = TransferProgress()
            options.progress = progress
            let (file, _) = try await client.download(for: request(), options: options)
            try FileManager.default.removeItem(at: file)
            #expect(progress.current == TransferProgress.Update(completed: 5, total: 5), "\(source)")
            #expect(progress.current.fractionCompleted == 1)
            #expect(progress.foundation.totalUnitCount == 5 && progress.foundation.completedUnitCount == 5)
            var last: TransferProgress.Update?
            for await update in progress.updates { last = update }
            #expect(last == progress.current, "the sequence ends, with the last update")
        }
        var options = CallOptions()
        let progress = TransferProgress()
        options.progress = progress
        _ = await failure { _ = try await client.data(for: try request("/broken"), options: options) }
        #expect(progress.current == TransferProgress.Update(completed: 3, total: 5))
        for await _ in progress.updates {}
    }

    // MARK: Time

    @Test("The timeout covers what the call waits for: content with data(for:) and download, the head with send")
    func timeouts() async throws {
        var options = CallOptions()
        options.timeout = .seconds(5)
        let limited = options
        let client = Pipeline(transport: HangingBodyTransport(), configuration: configuration)
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await client.data(for: request(), options: limited) },
            { _ = try await client.upload(for: request(), from: Data([1]), options: limited) },
            { _ = try await client.download(for: request(), options: limited) },
        ]
        for (index, call) in calls.enumerated() {
            let task = Task { try await call() }
            try await clock.waitForSleeps(index + 1)
            clock.advance(by: .seconds(5))
            let error = await failure { try await task.value }
            #expect(error?.code == .deadlineExceeded && error?.response?.status == .ok)
            #expect(
                error?.errorDescription?.hasPrefix(
                    "GET http://origin.example/a: The call timed out after 5.0 seconds (`CallOptions.timeout`), before all"
                ) == true
            )
        }
        let response = try await client.send(request(), options: options)
        clock.advance(by: .seconds(60))
        var chunks = response.body.makeAsyncIterator()
        #expect(try await chunks.next()?.count == 1)
        response.body.discard()
    }

    @Test("`.interactive` ends within ten seconds, content included")
    func interactive() async throws {
        let transport = HangingBodyTransport()
        let client = Pipeline(transport: transport, retrierFactory: .interactive, configuration: configuration)
        let call = Task { try await client.data(for: try request()) }
        try await clock.waitForSleeps(1)
        clock.advance(by: .seconds(10))
        #expect(await failure { _ = try await call.value }?.code == .deadlineExceeded)
    }

    // MARK: Stale

    private static let never: [HeaderFields] = [[:], ["Content-Type": "text/plain"]]

    @Test(
        "A response without lifetime and validator does not replace an unreachable server",
        arguments: never
    )
    func nothingNamed(fields: HeaderFields) async throws {
        let transport = ScriptedTransport([.respond(200, fields, body: "x"), .fail(.connect, progress: .notSent)])
        let client = Pipeline(transport: transport, cache: .inMemory(), configuration: configuration)
        _ = try await client.data(for: request())
        clock.advance(by: .seconds(1))
        #expect(await failure { _ = try await client.data(for: try request()) }?.code == .connect)
    }

    private static let named: [HeaderFields] = [
        ["Cache-Control": "max-age=60"], ["ETag": "\"a\""],
        ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Cache-Control": "max-age=0"],
    ]

    @Test(
        "A response with a lifetime or validator is served for a day, visibly, and counts as stale",
        arguments: named
    )
    func standsIn(fields: HeaderFields) async throws {
        let away = ScriptedTransport.Step.fail(.connect, progress: .notSent)
        let transport = ScriptedTransport([.respond(200, fields, body: "x"), away, away])
        let cache = HTTPCache.inMemory()
        let client = Pipeline(transport: transport, cache: cache, configuration: configuration)
        _ = try await client.data(for: request())
        clock.advance(by: .seconds(86_400))
        let (_, response) = try await client.data(for: request())
        let head = try #require(response as? HTTPURLResponse)
        let status = try #require(head.value(forHTTPHeaderField: "Cache-Status"))
        #expect(status.hasPrefix("holdfast;fwd=stale;ttl=-"), "\(status)")
        #expect(cache.statistics.staleOnError == 1 && cache.statistics.allHits == 0)
        #expect(cache.statistics.hitRatio == 0 && cache.statistics.staleOnErrorBytes == 1)
        clock.advance(by: .seconds(8 * 86_400))
        #expect(await failure { _ = try await client.data(for: try request()) }?.code == .connect)
    }

    // MARK: Limits

    @Test("Infinite durations do not trap")
    func infinite() async throws {
        let forever = Duration.seconds(Int64.max)
        var cacheOptions = CacheOptions()
        cacheOptions.heuristicCap = forever
        cacheOptions.retention = forever
        cacheOptions.maximumLifetime = forever
        cacheOptions.negativeLifetime = forever
        cacheOptions.staleWhileRevalidate = forever
        cacheOptions.staleIfError = forever
        cacheOptions.staleWhenDisconnected = forever
        cacheOptions.serveStaleAfter = forever
        cacheOptions.longestFillWait = forever
        cacheOptions.fillLease = forever
        var rules = RetryRules(backoff: Backoff(base: forever, cap: forever), maxServerDelay: forever)
        rules.throttlingBackoff = Backoff(base: forever, cap: forever)
        rules.maxParking = forever
        rules.callTimeout = forever
        rules.attemptTimeout = forever
        try rules.validate()
        var configuration = configuration
        configuration.callTimeout = forever
        configuration.attemptTimeout = forever
        var options = CallOptions()
        options.timeout = forever
        options.cache = .lifetime(forever)
        let transport = ScriptedTransport([
            .respond(200, ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], body: "x"), .respond(503),
            .respond(429, ["Retry-After": "99999999999999999999"]),
        ])
        let client = Pipeline(
            transport: transport,
            cache: .inMemory(options: cacheOptions),
            retrierFactory: .backoff(rules),
            configuration: configuration
        )
        _ = try await client.data(for: request(), options: options)
        _ = try await client.data(for: request(), options: options)
        let unlimited = options
        for path in ["/b", "/c"] {
            let call = Task { _ = try await client.data(for: request(path), options: unlimited) }
            try await transport.waitForSends(path == "/b" ? 2 : 3)
            call.cancel()
            _ = try? await call.value
        }
        #expect(transport.sent.count == 3)
    }

    @Test("The error for too many redirects has the attempts")
    func redirects() async throws {
        let transport = ScriptedTransport(Array(repeating: .respond(302, ["Location": "/a"]), count: 30))
        let client = Pipeline(transport: transport, configuration: configuration)
        let error = await failure { _ = try await client.send(try request()) }
        #expect(error?.code == .tooManyRedirects)
        #expect(error?.attempts.count == 21)
        #expect(error?.attempts.allSatisfy { $0.status == .found } == true)
    }

    // MARK: Pages

    @Test(
        "The keys of PaginatedData are its members' names, or total_pages, or what the decoder is given",
        arguments: [
            (#"{"page":1,"totalPages":3,"data":["a"]}"#, nil), (#"{"page":1,"total_pages":3,"data":["a"]}"#, nil),
            (
                #"{"current":1,"pages":3,"items":["a"]}"#,
                PaginatedDataKeys(page: "current", totalPages: "pages", data: "items")
            ),
        ]
    )
    func pages(json: String, keys: PaginatedDataKeys?) throws {
        let decoder = ServiceJSON.decoder()
        decoder.userInfo[.paginatedDataKeys] = keys
        let page = try decoder.decode(PaginatedData<String>.self, from: Data(json.utf8))
        #expect(page == PaginatedData(page: 1, totalPages: 3, data: ["a"]))
        let encoder = ServiceJSON.encoder()
        encoder.userInfo[.paginatedDataKeys] = keys
        #expect(try decoder.decode(PaginatedData<String>.self, from: encoder.encode(page)) == page)
    }
}

/// Answers at once, with content of which the first byte comes and the second never does.
private struct HangingBodyTransport: Transport {
    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        Response(status: .ok, body: ResponseBody(HangingBody()))
    }
}

private final class HangingBody: ByteSource {
    private let begun = Atomic(false)

    func next() async throws -> ByteChunk? {
        if !begun.exchange(true, ordering: .relaxed) { return ByteChunk([1]) }
        let (stream, _) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        throw CancellationError()
    }

    func cancel() {}
}
