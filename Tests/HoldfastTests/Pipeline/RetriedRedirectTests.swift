// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("RETRY §3.5: redirects and retries", .timeLimit(.minutes(20)))
struct RetriedRedirectTests {
    let clock = ManualClock(autoAdvances: true)

    func pipeline(
        _ transport: any Transport,
        _ factory: any RetrierFactory = .seeded(),
        cache: HTTPCache? = nil
    ) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        return Pipeline(transport: transport, cache: cache, retrierFactory: factory, configuration: configuration)
    }

    static func moved(_ location: String, _ wait: String? = nil, status: Int = 302) -> ScriptedTransport.Step {
        var fields: HeaderFields = ["Location": location]
        if let wait { fields[.retryAfter] = wait }
        return .respond(status, fields)
    }

    @Test("§3.5: each hop is retried with its own retrier, method and URL, and the chain does not restart")
    func perHop() async throws {
        let factory = WatchedFactory()
        let transport = ScriptedTransport([
            .respond(503), Self.moved("http://other.example/b"), .respond(500), .respond(502), .respond(200),
        ])
        let response = try await pipeline(transport, factory).send(.get("http://origin.example/a"))
        #expect(response.status == .ok && response.attempts.count == 3)
        #expect(
            transport.sent.map { $0.request.url?.host } == ["origin.example", "origin.example"]
                + Array(repeating: "other.example", count: 3)
        )
        #expect(transport.sent.map(\.attempt) == [1, 2, 1, 2, 3])
        #expect(factory.made.count == 2)
        #expect(
            factory.questions == [
                .init(method: "GET", path: "/a", attempt: 1), .init(method: "GET", path: "/b", attempt: 1),
                .init(method: "GET", path: "/b", attempt: 2),
            ]
        )
    }

    @Test("§3.5: 303 turns the rest into a GET, which is retried although the POST before it is not")
    func seeOther() async throws {
        let factory = WatchedFactory()
        let transport = ScriptedTransport([Self.moved("/b", status: 303), .respond(500), .respond(200)])
        let response = try await pipeline(transport, factory).send(
            .request("POST", "http://origin.example/a"),
            body: .bytes(ByteChunk([1]))
        )
        #expect(response.status == .ok)
        #expect(transport.sent.map { $0.request.httpMethod } == ["POST", "GET", "GET"])
        #expect(factory.questions == [.init(method: "GET", path: "/b", attempt: 1)])

        let refusing = ScriptedTransport([Self.moved("/b", status: 307), .respond(500), .respond(200)])
        let failed = try await pipeline(refusing).send(
            .request("POST", "http://origin.example/a"),
            body: .bytes(ByteChunk([1]))
        )
        #expect(failed.status == .internalServerError && refusing.sent.count == 2)
    }

    @Test(
        "§3.5: credentials and the Idempotency-Key are not sent to the next origin, in any attempt",
        arguments: [("/b", true), ("http://other.example/b", false)]
    )
    func acrossOrigins(_ location: String, _ isKept: Bool) async throws {
        let transport = ScriptedTransport([Self.moved(location, status: 307), .respond(503), .respond(200)])
        var options = CallOptions()
        options.isIdempotent = true
        let fields = ["Authorization": "Bearer t", "Idempotency-Key": "\"k\"", "Cookie": "c"]
        _ = try await pipeline(transport).send(
            .request("POST", "http://origin.example/a", fields),
            body: .bytes(ByteChunk([1])),
            options: options
        )
        #expect(transport.sent.count == 3)
        for sent in transport.sent.dropFirst() {
            for name in fields.keys { #expect((sent.request.value(forHTTPHeaderField: name) != nil) == isKept) }
        }
    }

    @Test(
        "§3.5, §3.2.4: Retry-After on a 3xx delays following, never less and at most half more",
        arguments: [301, 302, 303, 307, 308],
        [true, false]
    )
    func waits(_ status: Int, _ bySeconds: Bool) async throws {
        let date = HTTPDate(clock.timestamp.advanced(by: .seconds(8))).description
        let transport = ScriptedTransport([
            Self.moved("/b", bySeconds ? "8" : date, status: status), .respond(200),
        ])
        #expect(try await pipeline(transport).send(.get()).status == .ok)
        let waited = try #require(transport.sent.last?.time.sinceOrigin)
        #expect(waited >= .seconds(8) && waited <= .seconds(12))
    }

    @Test("§3.5: the wait of a redirect uses the factory's generator, so a seed reproduces it")
    func replays() async throws {
        var waits: [Duration?] = []
        for _ in 0..<2 {
            let transport = ScriptedTransport([Self.moved("/b", "8"), .respond(200)])
            let start = clock.now
            _ = try await pipeline(transport).send(.get())
            waits.append(transport.sent.last.map { start.duration(to: $0.time) })
        }
        #expect(waits[0] == waits[1])
    }

    @Test(
        "§3.5, complaint 1 of 12: a wait beyond the rules or the call's time is not started: the 3xx is returned",
        arguments: [
            ("61", nil, .serverDelayTooLong), ("8", 8, .deadline), ("8", 60, nil), ("x", nil, nil), ("0", nil, nil),
        ]
            as [(String, Int?, StopReason?)]
    )
    func returned(_ wait: String, _ seconds: Int?, _ reason: StopReason?) async throws {
        let transport = ScriptedTransport([Self.moved("/b", wait), .respond(200)])
        var options = CallOptions()
        options.timeout = seconds.map { .seconds($0) }
        let response = try await pipeline(transport).send(.get(), options: options)
        #expect(response.status == (reason == nil ? .ok : .found))
        #expect(response.attempts.last?.stopReason == reason)
        if reason != nil {
            #expect(clock.waits.isEmpty && transport.sent.count == 1)
            #expect(response.fields[.retryAfter] == wait)
        }
    }

    @Test("§3.5: a call that is cancelled in the wait before a redirect lets go of the content")
    func cancelledWait() async throws {
        let source = GatedSource([ByteChunk("x")])
        let origin = GatedOrigin { _, _ in .stream(302, ["Location": "/b", "Retry-After": "8"], source, nil) }
        origin.open()
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(transport: origin, retrierFactory: .seeded(), configuration: configuration)
        let call = Task { try await pipeline.send(.get("http://origin.example/a")) }
        await until { clock.waits.contains { $0 >= .seconds(8) } }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        try await source.ended.wait(for: 1)
        #expect(origin.asked.count == 1)
    }

    @Test("§3.5: there is no wait without rules, or if Retry-After is not obeyed", arguments: [true, false])
    func noRules(_ hasRules: Bool) async throws {
        let factory: any RetrierFactory =
            hasRules ? BackoffRetrier.Factory.seeded { $0.obeysRetryAfter = false } : NilRetrier.Factory()
        let transport = ScriptedTransport([Self.moved("/b", "8"), .respond(200)])
        #expect(try await pipeline(transport, factory).send(.get()).status == .ok)
        #expect(clock.waits.isEmpty)
    }

    @Test("§3.5: a call's own factory also decides on its redirects")
    func ownFactory() async throws {
        let transport = ScriptedTransport([Self.moved("/b", "8"), .respond(200)])
        var options = CallOptions()
        options.retrierFactory = NilRetrier.Factory()
        #expect(try await pipeline(transport).send(.get(), options: options).status == .ok)
        #expect(clock.waits.isEmpty)
    }

    @Test(
        "§3.5: a stored redirect has the rest of its wait, and none once that is over",
        arguments: [3, 30]
    )
    func stored(_ seconds: Int) async throws {
        let fields: HeaderFields = ["Location": "/b", "Retry-After": "8", "Cache-Control": "max-age=1000"]
        let transport = ScriptedTransport { request in
            request.url?.path == "/a" ? .respond(301, fields) : .respond(200)
        }
        let pipeline = pipeline(transport, cache: .inMemory())
        var hasty = CallOptions()
        hasty.retrierFactory = NilRetrier.Factory()
        _ = try await pipeline.send(.get("http://origin.example/a"), options: hasty)
        clock.advance(by: .seconds(seconds))
        _ = try await pipeline.send(.get("http://origin.example/a"))
        #expect(transport.sent.map { $0.request.url?.path } == ["/a", "/b", "/b"])
        guard seconds < 8 else { return #expect(clock.waits.isEmpty) }
        let wait = try #require(clock.waits.first)
        #expect(wait >= .seconds(5) && wait <= .milliseconds(7_500))
    }

    @Test("§3.5: cancelling ends the wait of a redirect at once")
    func cancelled() async throws {
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let transport = ScriptedTransport([Self.moved("/b", "8"), .respond(200)])
        let pipeline = Pipeline(transport: transport, retrierFactory: .seeded(), configuration: configuration)
        let call = Task { try await pipeline.send(.get()) }
        try await clock.waitForSleeps(1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(clock.sleeperCount == 0 && transport.sent.count == 1)
    }
}
