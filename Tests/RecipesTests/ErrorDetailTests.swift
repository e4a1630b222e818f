// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the errors of slow and broken exchanges say.
@Suite("The errors of slow and broken exchanges", .timeLimit(.minutes(20)))
struct ErrorDetailTests {
    private let clock = ManualClock()

    private func request(_ path: String = "/a?k=SECRET") throws -> URLRequest {
        URLRequest(url: try #require(URL(string: "http://origin.example\(path)")))
    }

    private func pipeline(
        _ transport: any Transport,
        cache: HTTPCache? = nil,
        retrierFactory: any RetrierFactory = .never,
        hooks: [any ServiceHook] = [],
        configure: (inout PipelineConfiguration) -> Void = { _ in }
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configure(&configuration)
        return Pipeline(
            transport: transport,
            cache: cache,
            retrierFactory: retrierFactory,
            hooks: hooks,
            configuration: configuration
        )
    }

    /// The error of a call to a server that never answers, once its time is over.
    private func timedOut(
        _ client: Pipeline,
        timeout: Duration? = nil,
        after time: Duration
    ) async throws -> ServiceError {
        var options = CallOptions()
        options.timeout = timeout
        let before = clock.waits.count
        let call = Task { [options] in try await client.send(try request(), options: options) }
        try await clock.waitForSleeps(before + 1)
        clock.advance(by: time)
        return try #require(await failure { _ = try await call.value })
    }

    // MARK: Limits

    @Test("A call that times out names its limit: its own, the pipeline's, that of its rules, or a hook's")
    func callLimits() async throws {
        func begin(_ limit: String) -> String { "The call timed out after \(limit), before a response arrived. " }
        let silent = ScriptedTransport([.silence], repeatsLastStep: true)
        let own = try await timedOut(pipeline(silent), timeout: .seconds(5), after: .seconds(5))
        #expect(own.code == .deadlineExceeded)
        #expect(own.message.hasPrefix(begin("5.0 seconds (`CallOptions.timeout`)")), "\(own)")
        let pipelines = pipeline(silent) { $0.callTimeout = .milliseconds(1500) }
        let theirs = try await timedOut(pipelines, after: .milliseconds(1500))
        #expect(theirs.message.hasPrefix(begin("1.5 seconds (`PipelineConfiguration.callTimeout`)")), "\(theirs)")
        var rules = RetryRules.never
        rules.callTimeout = .seconds(7)
        let ruled = try await timedOut(pipeline(silent, retrierFactory: .backoff(rules)), after: .seconds(7))
        #expect(ruled.message.hasPrefix(begin("7.0 seconds (`RetryRules.callTimeout`)")), "\(ruled)")
        let hooked = pipeline(
            silent,
            hooks: [
                .closures(onSchedule: { _, context in
                    context.options.timeout = .seconds(3)
                    return nil
                })
            ]
        )
        let late = try await timedOut(hooked, after: .seconds(3))
        #expect(late.message.hasPrefix(begin("3.0 seconds (`CallOptions.timeout`)")), "\(late)")
    }

    @Test("An attempt that times out names its limit, whether its transport or the pipeline ends it")
    func attemptLimits() async throws {
        for transport: any Transport in [ScriptedTransport([.silence], repeatsLastStep: true), DeafTransport()] {
            let client = pipeline(transport) { $0.attemptTimeout = .seconds(4) }
            let error = try await timedOut(client, after: .seconds(4))
            #expect(error.code == .timeout)
            #expect(
                error.message.hasPrefix(
                    "The server did not respond within 4.0 seconds (`PipelineConfiguration.attemptTimeout`). "
                ),
                "\(error)"
            )
            var rules = RetryRules.never
            rules.attemptTimeout = .seconds(2)
            let ruled = try await timedOut(pipeline(transport, retrierFactory: .backoff(rules)), after: .seconds(2))
            #expect(ruled.message.contains("within 2.0 seconds (`RetryRules.attemptTimeout`). "), "\(ruled)")
            // The limit of the call is the shorter one.
            let cut = try await timedOut(client, timeout: .seconds(1), after: .seconds(1))
            #expect(cut.code == .deadlineExceeded)
            #expect(cut.message.contains("after 1.0 seconds (`CallOptions.timeout`)"), "\(cut)")
            #expect((cut.cause as? ServiceError)?.message.contains("4.0") == false, "\(cut)")
        }
    }

    @Test("Calls that share an exchange each name their own limit")
    func sharedExchange() async throws {
        let client = pipeline(ScriptedTransport([.silence], repeatsLastStep: true), cache: .inMemory())
        let calls = [2, 6].map { seconds in
            var options = CallOptions()
            options.timeout = .seconds(seconds)
            return Task { [options] in try await client.send(try request(), options: options) }
        }
        try await clock.waitForSleeps(2)
        clock.advance(by: .seconds(2))
        let first = await failure { _ = try await calls[0].value }
        clock.advance(by: .seconds(4))
        let second = await failure { _ = try await calls[1].value }
        for (error, limit) in [(first, "2.0"), (second, "6.0")] {
            let text = error?.message ?? ""
            #expect(text.contains("after \(limit) seconds (`CallOptions.timeout`)"), "\(text)")
        }
    }

    // MARK: Broken bodies

    @Test(
        "A body that breaks off says so, with what arrived, and lists the attempts of its call",
        arguments: [
            (LoopbackReply.Framing.chunked, "5 bytes had arrived"), (.length(10), "5 of 10 bytes had arrived"),
        ]
    )
    func brokenBodies(framing: LoopbackReply.Framing, arrived: String) async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: framing, steps: [.send("hello"), .close])
        }
        let client = Pipeline(transport: URLSessionTransport())
        let request = URLRequest(url: server.url("/a?k=SECRET"))
        let calls: [(String, @Sendable () async throws -> Void)] = [
            ("data(for:)", { _ = try await client.data(for: request) }),
            ("download", { _ = try await client.download(for: request) }),
            ("collect", { _ = try await client.send(request).body.collect() }),
            ("for await", { for try await _ in try await client.send(request).body {} }),
            ("bytes", { for try await _ in try await client.bytes(for: request).0 {} }),
        ]
        for (name, call) in calls {
            let error = try #require(await failure(call), "\(name)")
            #expect(error.code == .connectionLost, "\(name): \(error)")
            #expect(
                error.message.hasPrefix(
                    "The connection was closed before the response body was complete: \(arrived). "
                ),
                "\(name): \(error)"
            )
            #expect(error.attempts.map(\.status) == [.ok], "\(name): \(error.attempts)")
            #expect(error.subject?.description == "GET http://127.0.0.1:\(server.port)/a?k=REDACTED", "\(name)")
        }
    }

    @Test("A chunked body with an invalid chunk is still no valid HTTP")
    func invalidChunk() async throws {
        let server = try LoopbackServer.start { _ in
            LoopbackReply(framing: .chunked, steps: [.send("hello"), .raw("zz\r\nnonsense\r\n"), .never])
        }
        let client = Pipeline(transport: URLSessionTransport())
        let error = await failure { _ = try await client.data(for: URLRequest(url: server.url())) }
        #expect(error?.code == .protocolError, "\(String(describing: error))")
        #expect(error?.attempts.count == 1)
    }

    @Test("A body after a retry lists both attempts")
    func attemptsOfRetriedCall() async throws {
        let transport = ScriptedTransport([
            .respond(503), .stream(chunks: ["x"], failure: ServiceError(.connectionLost, "It broke.")),
        ])
        let client = pipeline(transport, retrierFactory: .backoff(base: .zero))
        let response = try await client.send(request())
        let error = await failure { _ = try await response.body.data() }
        #expect(error?.attempts.map(\.status) == [.serviceUnavailable, .ok])
    }

    // MARK: Limits of bodies

    @Test("A body that is longer than its reader's limit names the call: streamed, in memory, or from the cache")
    func tooLong() async throws {
        let transport = ScriptedTransport([
            .stream(200, ["Cache-Control": "max-age=60"], chunks: ["hello", "world"]),
            .respond(200, body: "hello world"),
            .stream(chunks: ["hello world"], length: 11),
        ])
        let client = pipeline(transport, cache: .inMemory())
        func error(_ path: String, upTo limit: Int) async -> ServiceError? {
            await failure { _ = try await client.send(request(path)).body.data(upTo: limit) }
        }
        _ = try await client.data(for: request("/stored?k=SECRET"))
        for path in ["/stored", "/memory", "/stream"] {
            let error = await error(path + "?k=SECRET", upTo: 4)
            #expect(error?.code == .bodyTooLarge, "\(path)")
            #expect(
                error?.errorDescription?.hasPrefix(
                    "GET http://origin.example\(path)?k=REDACTED: The response body is longer than the limit of 4 bytes"
                ) == true,
                "\(path): \(String(describing: error))"
            )
        }
    }
}

/// Never answers, and does not watch its deadline.
private struct DeafTransport: Transport {
    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let (stream, _) = AsyncStream<Never>.makeStream()
        for await _ in stream {}
        throw CancellationError()
    }
}
