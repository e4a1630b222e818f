// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("RETRY §3.6.4: a retried validation (RFC 9111 §4.3.3)", .timeLimit(.minutes(20)))
struct RetriedValidationTests {
    static func fields(_ tag: String, _ seconds: Int = 10) -> HeaderFields {
        ["Cache-Control": "max-age=\(seconds)", "ETag": "\"\(tag)\""]
    }

    /// What happens to the stored response while its validation backs off.
    enum Change: CaseIterable, Sendable {
        /// A call past the cache stores another one.
        case reloaded
        /// A call that shares no fetch with the first one stores another one.
        case revalidated
        /// A person removes it.
        case purged
        /// An unsafe request may have changed it.
        case invalidated
    }

    /// A bench over a stale response "a", whose next validation fails once and waits 10 s.
    static func bench(
        _ steps: [ScriptedTransport.Step]
    ) async throws -> CacheBench {
        let bench = CacheBench(
            ScriptedTransport([.respond(200, fields("a"), body: "one"), .respond(500)] + steps),
            retrierFactory: .seeded { $0.waits(.seconds(10)) }
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        return bench
    }

    @Test("§3.6.4, E12: the conditions are the same in all attempts")
    func held() async throws {
        let bench = try await Self.bench([.respond(304, Self.fields("a"))])
        let call = Task { try await bench.load() }
        try await bench.clock.waitForSleeps(1)
        bench.clock.advance(by: .seconds(10))
        #expect(try await call.value == .revalidated("one"))
        #expect(bench.sent("If-None-Match") == [nil, "\"a\"", "\"a\""])
        #expect(try await bench.load() == .fresh("one"))
    }

    @Test("§3.6.4: they are renewed if the stored response changed during the backoff", arguments: Change.allCases)
    func renewed(_ change: Change) async throws {
        let isReplaced = change == .reloaded || change == .revalidated
        var steps: [ScriptedTransport.Step] = []
        if isReplaced { steps.append(.respond(200, Self.fields("b", 1), body: "two")) }
        if change == .invalidated { steps.append(.respond(204)) }
        steps.append(
            isReplaced ? .respond(304, Self.fields("b", 60)) : .respond(200, Self.fields("c", 60), body: "three")
        )
        let bench = try await Self.bench(steps)
        let call = Task { try await bench.load() }
        try await bench.clock.waitForSleeps(1)
        var options = CallOptions()
        switch change {
        case .reloaded:
            options.cache = .reload
            try await bench.load(.get(), options)
        case .revalidated:
            options.tags = ["another"]
            try await bench.load(.get(), options)
        case .purged: try await bench.cache.remove(.all)
        case .invalidated: try await bench.load(.request("POST", "http://origin.example/a"))
        }
        bench.clock.advance(by: .seconds(10))
        #expect(try await call.value.body == (isReplaced ? "two" : "three"))
        #expect((bench.sent("If-None-Match").last ?? nil) == (isReplaced ? "\"b\"" : nil))
        if isReplaced {
            bench.clock.advance(by: .seconds(30))
            #expect(try await bench.load() == .fresh("two"))
        }
    }

    @Test("§3.6.4: they are also renewed behind a gate, however long the first attempt waited there")
    func renewedBehindGate() async throws {
        let bench = CacheBench(
            ScriptedTransport([
                .respond(200, Self.fields("a"), body: "one"), .respond(429, ["Retry-After": "30"]),
                .respond(200, Self.fields("b", 60), body: "two"),
            ]),
            retrierFactory: .seeded { $0.maxAttempts = 1 }
        )
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        try await bench.load(.get("http://origin.example/elsewhere"))
        let call = Task { try await bench.load() }
        try await bench.clock.waitForSleeps(1)
        try await bench.cache.remove(.all)
        bench.clock.advance(by: .seconds(60))
        #expect(try await call.value == .network("two"))
        #expect(bench.sent("If-None-Match") == [nil, nil, nil])
    }

    @Test("§3.6.4: what hooks below the cache set stays when the conditions change")
    func hooksBelow() async throws {
        let clock = ManualClock()
        let cache = HTTPCache.inMemory()
        var signing = RecordingHook(name: "signs", log: HookLog(), scope: .message)
        signing.schedule = { request, _ in
            request.setValue("yes", forHTTPHeaderField: "X-Signed")
            return nil
        }
        let transport = ScriptedTransport([
            .respond(200, Self.fields("a"), body: "one"), .respond(500), .respond(200, Self.fields("b"), body: "two"),
        ])
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let pipeline = Pipeline(
            transport: transport,
            retrierFactory: .seeded { $0.waits(.seconds(10)) },
            hooks: [CachingHook(cache), signing],
            configuration: configuration
        )
        _ = try await pipeline.data(for: .get())
        clock.advance(by: .seconds(20))
        let call = Task { try await pipeline.data(for: .get()).0 }
        try await clock.waitForSleeps(1)
        try await cache.remove(.all)
        clock.advance(by: .seconds(10))
        #expect(try await call.value == Data("two".utf8))
        let last = try #require(transport.sent.last?.request)
        #expect(last.value(forHTTPHeaderField: "X-Signed") == "yes")
        #expect(last.value(forHTTPHeaderField: "If-None-Match") == nil)
    }

    @Test("§3.6.4: a 304 freshens only the response whose validator was sent")
    func freshensItsOwn() async throws {
        let bench = CacheBench([
            .respond(200, Self.fields("a"), body: "one"),
            .respond(304, Self.fields("a", 1_000)).delayed(by: .seconds(5)),
            .respond(200, Self.fields("b"), body: "two"), .respond(304, Self.fields("b")),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(20))
        let call = Task { try await bench.load() }
        try await bench.clock.waitForSleeps(1)
        var options = CallOptions()
        options.cache = .reload
        #expect(try await bench.load(.get(), options) == .network("two"))
        bench.clock.advance(by: .seconds(5))
        #expect(try await call.value == .revalidated("one"))
        #expect(try await bench.load() == .fresh("two"))
        bench.clock.advance(by: .seconds(20))
        #expect(try await bench.load() == .revalidated("two"))
        #expect(bench.sent("If-None-Match") == [nil, "\"a\"", nil, "\"b\""])
    }

    @Test("§3.6.4: a retry still asks for the missing part only, however many other exchanges have ended meanwhile")
    func missingPart() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport, retrierFactory: .seeded { $0.waits(.seconds(10)) })
        origin.change { $0.breaksAfter = 40 }
        try await bench.readBroken()
        origin.change { $0.instead = .respond(500) }
        let call = Task { try await bench.range(nil) }
        try await bench.clock.waitForSleeps(1)
        for number in 0..<80 { try await bench.load(.get("http://origin.example/other/\(number)")) }
        bench.clock.advance(by: .seconds(10))
        #expect(try await call.value.body == origin.bytes())
        #expect(bench.sent("If-None-Match").allSatisfy { $0 == nil })
        #expect(bench.sent("Range").last == "bytes=40-99")
    }
}
