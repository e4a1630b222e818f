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

// msqd/harp#947 (50 clients, 47 fetches), requests-cache/requests-cache#515, strapi-community/plugin-rest-cache#130,
// gofiber/fiber#2182: identical concurrent requests all went out.
@Suite("Collapsed forwarding: one exchange for equal calls (RFC 9111 §4)", .timeLimit(.minutes(20)))
struct CollapsedForwardingTests {
    @Test("msqd/harp#947, gofiber/fiber#2182: 50 callers of a cold key make exactly one request")
    func coldKey() async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        let calls = bench.calls(50)
        await bench.waitForReaders(50)
        bench.origin.open(50)
        var sources: [ResponseSource: Int] = [:]
        for call in calls {
            let answer = try await call.value
            #expect(answer.body == "one")
            sources[answer.source, default: 0] += 1
        }
        #expect(sources == [.network(attempts: 1): 1, .collapsed: 49])
        #expect(bench.sends == 1)
        await bench.waitForQuiet()
        let counted = bench.cache.statistics
        #expect(counted.misses == 1 && counted.collapsed == 49 && counted.collapsedBytes == 49 * 3)
    }

    @Test("The first caller is cancelled before the head: the others get the answer of the one request")
    func firstCancelledBeforeHead() async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        let first = bench.call()
        await bench.waitForReaders(1)
        let others = bench.calls(49)
        await bench.waitForReaders(50)
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        bench.origin.open(50)
        for call in others { #expect(try await call.value == .collapsed("one")) }
        #expect(bench.sends == 1)
        #expect(bench.origin.cancelled.count == 0)
        #expect(try await bench.load() == .fresh("one"))
    }

    @Test("The first caller leaves after the head: the others get the whole body, and it is stored")
    func firstLeavesAfterHead() async throws {
        let source = GatedSource([ByteChunk([1]), ByteChunk([2])])
        let bench = FlightBench(GatedOrigin { _, _ in .stream(200, cacheable, source, nil) })
        let first = Task { try await bench.pipeline.send(.get()) }
        await bench.waitForReaders(1)
        let others = (0..<9).map { _ in
            Task { try await bench.pipeline.send(.get()).body.collect() }
        }
        await bench.waitForReaders(10)
        bench.origin.open()
        var response: Response? = try await first.value
        source.open()
        #expect(try await #require(response?.body.source).next() == ByteChunk([1]))
        response = nil
        source.open(2)
        for reader in others { #expect(try await reader.value == ByteChunk([1, 2])) }
        await bench.waitForQuiet()
        #expect(bench.cache.store.statistics.entryCount == 1)
        #expect(bench.sends == 1)
    }

    @Test("A typed call that opened the flight and is cancelled does not keep the response out of the store")
    func cancelledTypedCall() async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        var options = CallOptions()
        options.acceptance = .successful
        let first = bench.call(.get(), options)
        await bench.waitForReaders(1)
        let other = bench.call()
        await bench.waitForReaders(2)
        first.cancel()
        _ = try? await first.value
        bench.origin.open()
        #expect(try await other.value == .collapsed("one"))
        #expect(try await bench.load() == .fresh("one"))
    }

    @Test("What one caller's acceptance refuses in an attempt is no failure of the others", arguments: [true, false])
    func acceptances(_ judgesAttempts: Bool) async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw Refused() }
        options.acceptance?.judgesAttempts = judgesAttempts
        let first = bench.call(.get(), options)
        try await bench.origin.asked.wait(for: 1)
        let other = bench.call()
        await bench.waitForReaders(judgesAttempts ? 1 : 2)
        bench.origin.open(3)
        await #expect(throws: Refused.self) { try await first.value }
        #expect(try await other.value.body == "one")
    }

    @Test("50 callers of a stale response with a validator: one conditional request", arguments: [304, 200])
    func validations(_ status: Int) async throws {
        let bench = FlightBench(
            GatedOrigin { _, number in
                number == 1
                    ? .answer(200, ["Cache-Control": "max-age=10", "ETag": "\"a\""], "one")
                    : .answer(
                        status,
                        ["Cache-Control": "max-age=10", "ETag": status == 304 ? "\"a\"" : "\"b\""],
                        status == 304 ? "" : "two"
                    )
            }
        )
        bench.origin.open()
        _ = try await bench.load()
        bench.clock.advance(by: .seconds(20))
        let calls = bench.calls(50)
        await bench.waitForReaders(50)
        bench.origin.open()
        for call in calls {
            let answer = try await call.value
            #expect(answer.status == 200 && answer.body == (status == 304 ? "one" : "two"))
        }
        #expect(bench.origin.sent("If-None-Match") == [nil, "\"a\""])
        #expect(bench.cache.statistics.collapsed == 49)
    }

    @Test(
        "A response that may not be shared releases the followers at once, and nobody waits for 60 s",
        arguments: [("no-store", CacheOptions.Mode.private), ("private, max-age=9", .shared), ("no-store", .shared)]
    )
    func unshareable(_ cacheControl: String, _ mode: CacheOptions.Mode) async throws {
        let bench = FlightBench(
            GatedOrigin { _, number in .answer(200, ["Cache-Control": cacheControl], "\(number)") },
            options: CacheOptions(mode: mode)
        )
        let calls = bench.calls(20)
        await bench.waitForReaders(20)
        bench.origin.open()
        // No convoy: all the others are at the origin before any of them is answered.
        try await bench.origin.asked.wait(for: 20)
        bench.clock.advance(by: .seconds(59))
        let later = bench.calls(5)
        try await bench.origin.asked.wait(for: 25)
        bench.origin.open(24)
        var bodies: Set<String> = []
        for call in calls + later { bodies.insert(try await call.value.body) }
        #expect(bodies.count == 25)
        bench.clock.advance(by: .seconds(61))
        let again = bench.calls(3)
        await bench.waitForReaders(3)
        try await bench.origin.asked.wait(for: 26)
        #expect(bench.sends == 26)
        bench.origin.open(9)
        for call in again { _ = try await call.value }
    }

    @Test("A follower whose nominated fields differ gets an exchange of its own, and shares it with its like")
    func vary() async throws {
        let bench = FlightBench(
            GatedOrigin { request, _ in
                .answer(
                    200,
                    ["Cache-Control": "max-age=60", "Vary": "X-Tenant"],
                    request.value(forHTTPHeaderField: "X-Tenant") ?? ""
                )
            }
        )
        let a = URLRequest.get("http://origin.example/a", ["X-Tenant": "a"])
        let b = URLRequest.get("http://origin.example/a", ["X-Tenant": "b"])
        let first = bench.calls(10, a)
        await bench.waitForReaders(10)
        let others = bench.calls(10, b)
        await bench.waitForReaders(20)
        bench.origin.open()
        try await bench.origin.asked.wait(for: 2)
        await bench.waitForReaders(10)
        bench.origin.open(20)
        for call in first { #expect(try await call.value.body == "a") }
        for call in others { #expect(try await call.value.body == "b") }
        #expect(bench.sends == 2)
    }

    @Test(
        "lysine-dev/okhttp#9365: users never share an exchange",
        arguments: ["Authorization", "Cookie", "principal"],
        [CacheOptions.Mode.private, .shared]
    )
    func users(_ field: String, _ mode: CacheOptions.Mode) async throws {
        let bench = FlightBench(
            GatedOrigin { request, number in .answer(200, ["Cache-Control": "public, max-age=60"], "\(number)") },
            options: CacheOptions(mode: mode)
        )
        let calls = (0..<10).map { user in
            var options = CallOptions()
            if field == "principal" { options.principal = "\(user)" }
            return bench.call(.get("http://origin.example/a", [field: "\(user)"]), options)
        }
        try await bench.origin.asked.wait(for: 10)
        bench.origin.open(10)
        var bodies: Set<String> = []
        for call in calls { bodies.insert(try await call.value.body) }
        #expect(bodies.count == 10)
    }

    @Test("A failure status is shared among those present", arguments: [500, 502, 503, 504, 429], [true, false])
    func failureStatus(_ status: Int, _ streams: Bool) async throws {
        let bench = FlightBench(
            GatedOrigin { _, _ in
                let source = GatedSource([ByteChunk(copying: "no".utf8)])
                source.open(2)
                return streams ? .stream(status, [:], source, nil) : .answer(status, [:], "no")
            }
        )
        let calls = bench.calls(20)
        await bench.waitForReaders(20)
        bench.origin.open()
        for call in calls {
            let answer = try await call.value
            #expect(answer.status == status && answer.body == "no")
        }
        #expect(bench.sends == 1)
        bench.origin.open()
        _ = try await bench.load()
        #expect(bench.sends == 2)
    }

    @Test("A store that cannot take the response does not keep it from those who wait", arguments: [true, false])
    func storeCannotTake(_ fails: Bool) async throws {
        let store = FaultyStore()
        if fails { store.fault.withLock { $0 = .write } }
        let bench = FlightBench(
            GatedOrigin { _, _ in .answer(200, cacheable, "one") },
            store: fails ? store : MemoryStore(capacity: 1)
        )
        for _ in 0..<2 {
            let before = bench.sends
            let calls = bench.calls(20)
            await bench.waitForReaders(20)
            bench.origin.open()
            for call in calls { #expect(try await call.value.body == "one") }
            #expect(bench.sends == before + 1)
        }
    }

    @Test("Later callers do not join what went out before an invalidation or a purge", arguments: [true, false])
    func invalidated(_ byPurge: Bool) async throws {
        let bench = FlightBench(
            GatedOrigin { request, number in .answer(request.httpMethod == "PUT" ? 204 : 200, cacheable, "\(number)") }
        )
        let early = bench.calls(5)
        await bench.waitForReaders(5)
        let url = try #require(URLRequest.get().url)
        if byPurge {
            try await bench.cache.remove(url)
        } else {
            let put = bench.call(.request("PUT", "http://origin.example/a"))
            try await bench.origin.asked.wait(for: 2)
            bench.origin.open(2)
            _ = try await put.value
            for call in early { #expect(try await call.value.body == "1") }
            bench.origin.open()
            #expect(try await bench.load() == .network("3"))
            return
        }
        let later = bench.calls(5)
        try await bench.origin.asked.wait(for: 2)
        await bench.waitForReaders(10)
        bench.origin.open(9)
        for call in early { #expect(try await call.value.body == "1") }
        for call in later { #expect(try await call.value.body == "2") }
        #expect(try await bench.load() == .fresh("2"))
    }

    @Test("Two pipelines that share a cache share the exchange; nested ones do not wait for themselves")
    func pipelines() async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        var configuration = PipelineConfiguration()
        configuration.clock = bench.clock
        let second = Pipeline(transport: bench.origin, cache: bench.cache, configuration: configuration)
        let nested = Pipeline(transport: bench.pipeline, cache: bench.cache, configuration: configuration)
        let calls = [bench.pipeline, second].flatMap { pipeline in
            (0..<5).map { _ in Task { try await pipeline.send(.get()).body.collect() } }
        }
        await bench.waitForReaders(10)
        bench.origin.open()
        for call in calls { #expect(try await call.value == ByteChunk(copying: "one".utf8)) }
        #expect(bench.sends == 1)
        bench.origin.open()
        let other = URLRequest.get("http://origin.example/nested")
        #expect(try await nested.send(other).body.collect() == ByteChunk(copying: "one".utf8))
        #expect(bench.sends == 2)
    }

    @Test(
        "What is no plain GET goes out for itself",
        arguments: [
            .request("HEAD", "http://origin.example/a"), .get("http://origin.example/a", ["Range": "bytes=0-1"]),
            .get("http://origin.example/a", ["If-None-Match": "\"x\""]), .request("POST", "http://origin.example/a"),
        ] as [URLRequest]
    )
    func separate(_ request: URLRequest) async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, ["Cache-Control": "no-cache"], "one") })
        let calls = bench.calls(5, request)
        try await bench.origin.asked.wait(for: 5)
        bench.origin.open(5)
        for call in calls { _ = try await call.value }
    }

    @Test("reload and noStore go out for themselves", arguments: [CacheDirective.reload, .noStore])
    func directives(_ directive: CacheDirective) async throws {
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, ["Cache-Control": "no-cache"], "one") })
        var options = CallOptions()
        options.cache = directive
        let calls = bench.calls(5, .get(), options)
        try await bench.origin.asked.wait(for: 5)
        bench.origin.open(5)
        for call in calls { _ = try await call.value }
    }

    @Test("A look-up that a landing overtook looks again instead of sending")
    func overtakenLookUp() async throws {
        let store = FaultyStore()
        let bench = FlightBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") }, store: store)
        let first = bench.call()
        try await bench.origin.asked.wait(for: 1)
        store.stallsAnswers.store(true, ordering: .relaxed)
        let second = bench.call()
        try await store.lookUps.wait(for: 1)
        bench.origin.open(2)
        #expect(try await first.value == .network("one"))
        await bench.waitForQuiet()
        store.stallsAnswers.store(false, ordering: .relaxed)
        store.gate.increment()
        #expect(try await second.value == .fresh("one"))
        #expect(bench.sends == 1)
        #expect(bench.cache.statistics.requests == 2)
    }
}
