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

/// Rules of admission that the random sequences seldom or never put to the test.
@Suite("Each rule of admission, seen from outside", .timeLimit(.minutes(20)))
struct AdmissionRuleTests {
    /// Adds a field to the calls that bear a tag, as a hook of the user's above the cache does.
    private struct NamingHook: ServiceHook {
        var scope: HookScope { .message }

        func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
            if let tag = context.options.tags.first { request.setValue(tag, forHTTPHeaderField: "X-Whatever") }
            return nil
        }
    }

    private static func tagged(_ tag: String) -> CallOptions {
        var options = CallOptions()
        options.tags = [tag]
        return options
    }

    @Test(
        "A field that a hook adds above the cache makes the response private to the caller",
        arguments: [false, true]
    )
    func fieldOfHook(_ isShared: Bool) async throws {
        let bench = CacheBench(
            ScriptedTransport { request in
                let body = request.value(forHTTPHeaderField: "X-Whatever") ?? "nobody"
                return .respond(200, ["Cache-Control": "max-age=60"], body: body)
            },
            mode: isShared ? .shared : .private,
            hooks: [NamingHook()]
        )
        #expect(try await bench.load(.get(), Self.tagged("alice")) == .network("alice"))
        #expect(try await bench.load(.get(), Self.tagged("bob")) == .network("bob"))
        #expect(try await bench.load(.get(), Self.tagged("alice")) == .fresh("alice"))
        #expect(try await bench.load() == .network("nobody"))
    }

    // MARK: What those who wait are given

    /// Two equal calls at once.
    private static func twoCalls(
        _ fields: HeaderFields,
        options: CacheOptions = CacheOptions()
    ) async throws -> (responses: [Response], sends: Int) {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, fields, "one") }, options: options)
        let calls = (0..<2).map { _ in Task { try await bench.pipeline.send(.get()) } }
        await bench.waitForReaders(2)
        bench.origin.open(2)
        var responses: [Response] = []
        for call in calls {
            let response = try await call.value
            _ = try await response.body.collect()
            responses.append(response)
        }
        return (responses, bench.sends)
    }

    @Test(
        "RFC 9111 §5.2.2.4: a response that needs validation answers no waiting call",
        arguments: ["no-cache", "max-age=60"]
    )
    func waitingForNoCache(_ cacheControl: String) async throws {
        let (_, sends) = try await Self.twoCalls(["Cache-Control": cacheControl, "ETag": "\"v\""])
        #expect(sends == (cacheControl == "no-cache" ? 2 : 1))
    }

    @Test(
        "RFC 9111 §5.2.2.4, §5.2.2.7: waiting calls do not get fields that a qualified directive names",
        arguments: [
            (CacheOptions.Mode.private, "no-cache=\"x-own\", max-age=60"), (.shared, "no-cache=\"x-own\", max-age=60"),
            (.shared, "private=\"x-own\", max-age=60"),
        ]
    )
    func waitingForQualified(_ mode: CacheOptions.Mode, _ cacheControl: String) async throws {
        var options = CacheOptions()
        options.mode = mode
        let fields: HeaderFields = ["Cache-Control": cacheControl, "X-Own": "first", "X-All": "all"]
        let (responses, sends) = try await Self.twoCalls(fields, options: options)
        #expect(sends == 1)
        for response in responses {
            #expect(response.fields.contains("X-Own") == (response.source != .collapsed))
            #expect(response.fields.contains("X-All"))
        }
        #expect(responses.count { $0.source == .collapsed } == 1)
    }

    // MARK: Order of news

    /// An origin whose answers wait until it is their turn: numbers from 1 in the order in which they were asked for.
    private static func bench(_ answers: [Response]) -> (bench: FetchBench, gates: [CountWatch]) {
        let gates = answers.map { _ in CountWatch() }
        let origin = GatedOrigin { _, number in
            try await gates[number - 1].wait(for: 1)
            return answers[number - 1]
        }
        origin.open(answers.count)
        return (FetchBench(origin), gates)
    }

    private static func news(_ status: Int, _ from: String, tag: String = "\"v\"") -> Response {
        .answer(status, ["Cache-Control": "max-age=600", "ETag": tag, "X-From": from])
    }

    @Test(
        "RFC 9111 §4, §4.3.4, §4.3.5: an update that was requested first does not replace a later one",
        arguments: ["GET", "HEAD"]
    )
    func newsInOrder(_ method: String) async throws {
        let status = method == "HEAD" ? 200 : 304
        let (bench, gates) = Self.bench([
            .answer(200, ["Cache-Control": "max-age=60", "ETag": "\"v\"", "X-From": "first"], "page"),
            Self.news(status, "older"), Self.news(status, "newer"),
        ])
        gates[0].increment()
        _ = try await bench.load()
        var request = URLRequest.get()
        request.httpMethod = method
        var options = CallOptions()
        options.cache = method == "HEAD" ? .reload : .revalidate
        let older = bench.call(request, options)
        try await bench.origin.asked.wait(for: 2)
        bench.clock.advance(by: .seconds(1))
        let newer = bench.call(request, options)
        try await bench.origin.asked.wait(for: 3)
        bench.clock.advance(by: .seconds(1))
        gates[2].increment()
        _ = try await newer.value
        gates[1].increment()
        _ = try await older.value
        let response = try await bench.pipeline.send(.get())
        #expect(response.source == .fresh && response.fields["X-From"] == "newer")
        _ = try await response.body.collect()
    }

    @Test(
        "RFC 9111 §4.4: a HEAD that ends after a POST changes nothing that another process stored since",
        arguments: ["\"v\"", "\"other\""]
    )
    func headAfterPostElsewhere(_ tag: String) async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let gate = CountWatch()
        let origin = GatedOrigin { request, _ in
            switch request.httpMethod {
            case "HEAD":
                try await gate.wait(for: 1)
                return Self.news(200, "head", tag: tag)
            case "POST": return .answer(204)
            default: return .answer(200, ["Cache-Control": "max-age=60", "ETag": "\"v\"", "X-From": "get"], "page")
            }
        }
        origin.open(9)
        let (here, there) = (FetchBench(origin, store: store), FetchBench(origin, store: store))
        _ = try await here.load()
        var options = CallOptions()
        options.cache = .reload
        let head = here.call(.request("HEAD", "http://origin.example/a"), options)
        try await origin.asked.wait(for: 2)
        _ = try await here.load(.request("POST", "http://origin.example/a"))
        _ = try await there.load()
        gate.increment()
        _ = try await head.value
        let response = try await here.pipeline.send(.get())
        #expect(response.source == .fresh && response.fields["X-From"] == "get")
        _ = try await response.body.collect()
    }

    @Test("RFC 9111 §4.4: a lookup waits for the invalidation by a cancelled POST")
    func lookUpAfterCancelledPost() async throws {
        let origin = GatedOrigin { _, number in .answer(200, cacheable, number == 1 ? "old" : "new") }
        let store = FaultyStore()
        let bench = FetchBench(origin, store: store)
        origin.open()
        #expect(try await bench.load() == .network("old"))
        store.stallsInvalidations.store(true, ordering: .relaxed)
        let post = bench.call(.request("POST", "http://origin.example/a"))
        try await origin.asked.wait(for: 2)
        post.cancel()
        _ = await post.result
        try await store.invalidations.wait(for: 1)
        let get = bench.call()
        for _ in 0..<1_000 { await Task.yield() }
        origin.open(9)
        store.gate.increment()
        #expect(try await get.value == .network("new"))
    }
}
