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
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
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

    @Test("A call that looked just before a response was stored, and its exchange over, sends no request of its own")
    func storedAfterLook() async throws {
        let store = DoubtingStore()
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") }, store: store)
        bench.origin.open(2)
        #expect(try await bench.load().source == .network(attempts: 1))
        let url = try #require(URLRequest.get().url)
        let key = CacheKey(method: .get, target: try TargetURI(url.absoluteString))
        store.afterLook.withLock { $0 = { [cache = bench.cache] in cache.fetches.noteCompletion(key) } }
        #expect(try await bench.load() == .fresh("one"))
        #expect(bench.sends == 1)
    }

    @Test("If the first caller is cancelled before the head, the others get the response to the one request")
    func firstCancelledBeforeHead() async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
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

    @Test("If the first caller leaves after the head, the others get the whole body, and it is stored")
    func firstLeavesAfterHead() async throws {
        let source = GatedSource([ByteChunk([1]), ByteChunk([2])])
        let bench = FetchBench(GatedOrigin { _, _ in .stream(200, cacheable, source, nil) })
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

    @Test("A cancelled typed call that started the fetch does not keep the response out of the store")
    func cancelledTypedCall() async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
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

    @Test(
        "What one caller's acceptance refuses in an attempt is not a failure for the others",
        arguments: [true, false]
    )
    func acceptances(_ checksAttempts: Bool) async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw Refused() }
        options.acceptance?.checksAttempts = checksAttempts
        let first = bench.call(.get(), options)
        try await bench.origin.asked.wait(for: 1)
        let other = bench.call()
        await bench.waitForReaders(checksAttempts ? 1 : 2)
        bench.origin.open(3)
        await #expect(throws: Refused.self) { try await first.value }
        #expect(try await other.value.body == "one")
    }

    @Test("50 callers of a stale response with a validator: one conditional request", arguments: [304, 200])
    func validations(_ status: Int) async throws {
        let bench = FetchBench(
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

    @Test("A failure status is shared among waiting callers", arguments: [500, 502, 503, 504, 429], [true, false])
    func failureStatus(_ status: Int, _ streams: Bool) async throws {
        let bench = FetchBench(
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

    private struct Told {
        let status: Int
        let fields: HeaderFields
        let body: String
    }

    /// What the first call and one that waits for its exchange are told.
    private func told(_ bench: FetchBench, first: CallOptions = CallOptions()) async throws -> [Told] {
        func call(_ options: CallOptions) -> Task<Told, any Error> {
            Task {
                let response = try await bench.pipeline.send(.get(), options: options)
                let body = String(decoding: try await response.body.collect(), as: UTF8.self)
                return Told(status: response.status.rawValue, fields: response.fields, body: body)
            }
        }
        let leader = call(first)
        try await bench.origin.asked.wait(for: 1)
        let waiting = call(CallOptions())
        await bench.waitForReaders(2)
        bench.origin.open(2)
        return [try await leader.value, try await waiting.value]
    }

    @Test(
        "If a failure concerns one client only, the others learn only that it failed and when to come back",
        arguments: [
            (503, ["Cache-Control": "no-store", "Set-Cookie": "s=1"], CacheOptions.Mode.shared, false),
            (429, ["Cache-Control": "private", "X-Name": "first"], .shared, false),
            (500, ["Set-Cookie": "s=1"], .shared, false),
            (503, ["Vary": "*"], .private, false), (503, ["Cache-Control": "no-store"], .private, false),
            (503, ["Cache-Control": "private"], .private, true), (503, ["X-Name": "all"], .shared, true),
            (503, ["CDN-Cache-Control": "private", "X-Name": "first"], .shared, false),
            (503, ["CDN-Cache-Control": "no-store", "Cache-Control": "public"], .shared, false),
            (503, ["CDN-Cache-Control": "max-age=1", "Cache-Control": "private"], .shared, true),
        ] as [(Int, HeaderFields, CacheOptions.Mode, Bool)],
        [true, false]
    )
    func ownFailure(
        _ row: (status: Int, fields: HeaderFields, mode: CacheOptions.Mode, isShared: Bool),
        _ streams: Bool
    )
        async throws
    {
        let fields = row.fields.merging(["Retry-After": "7"])
        let bench = FetchBench(
            GatedOrigin { _, _ in
                let source = GatedSource([ByteChunk(copying: "page of first".utf8)])
                source.open(2)
                return streams ? .stream(row.status, fields, source, nil) : .answer(row.status, fields, "page of first")
            },
            options: CacheOptions(mode: row.mode)
        )
        let told = try await told(bench)
        #expect(told[0].body == "page of first" && told[0].fields.contains("Retry-After"))
        #expect(told[1].status == row.status && told[1].fields["Retry-After"] == "7")
        #expect(told[1].body == (row.isShared ? "page of first" : ""))
        for name in ["Set-Cookie", "X-Name"] as [FieldName] where !row.isShared {
            #expect(!told[1].fields.contains(name))
        }
        #expect(bench.sends == 1)
    }

    @Test(
        "A failure that concerns one client only ends its transfer when that client leaves, whoever else was told",
        arguments: [["Cache-Control": "no-store"], ["Vary": "*"]] as [HeaderFields],
        [true, false]
    )
    func ownFailureLeft(_ fields: HeaderFields, _ othersFirst: Bool) async throws {
        let source = GatedSource([ByteChunk(copying: "page".utf8), ByteChunk(copying: " of first".utf8)])
        let bench = FetchBench(GatedOrigin { _, _ in .stream(503, fields, source, nil) })
        let leader = Task { try await bench.pipeline.send(.get()) }
        try await bench.origin.asked.wait(for: 1)
        let waiting = bench.calls(3)
        await bench.waitForReaders(4)
        bench.origin.open()
        let response = try await leader.value
        source.open()
        #expect(try await response.body.source?.next() == ByteChunk(copying: "page".utf8))
        if !othersFirst { response.body.discard() }
        for call in waiting { #expect(try await call.value == .collapsed("", 503)) }
        if othersFirst { response.body.discard() }
        // The last one to leave has cancelled the transfer; otherwise the pipeline would never be quiet.
        try #require(source.ended.count > 0)
        await bench.waitForQuiet()
        #expect(bench.sends == 1)
    }

    @Test(
        "A failure with a prepare step's credential is not shared, whatever else is wrong with it",
        arguments: [true, false]
    )
    func preparedFailure(_ isSynthesized: Bool) async throws {
        let bench = FetchBench(
            GatedOrigin { request, _ in
                let isAlice = request.value(forHTTPHeaderField: "Authorization") != nil
                var response = Response.answer(503, ["Content-Length": "99"], isAlice ? "alice's" : "all's")
                if isSynthesized { response.source = .synthesized }
                return response
            },
            options: CacheOptions(mode: .shared)
        )
        var options = CallOptions()
        options.prepare = [{ request, _ in request.setValue("Bearer a", forHTTPHeaderField: "Authorization") }]
        let told = try await told(bench, first: options)
        #expect(told.map(\.body) == ["alice's", "all's"])
    }

    @Test("After a POST to an equivalent URI no call uses a response sent before it (No-Vary-Search)")
    func equivalentInvalidated() async throws {
        let held = CountWatch()
        let bench = FetchBench(
            GatedOrigin { _, number in
                if number == 1 { try await held.wait(for: 1) }
                return .answer(
                    200,
                    ["Cache-Control": "max-age=600", "No-Vary-Search": "params=(\"s\")"],
                    "answer \(number)"
                )
            }
        )
        let before = bench.call(.get("http://origin.example/?q=a&s=3"))
        try await bench.origin.asked.wait(for: 1)
        bench.origin.open(3)
        _ = try await bench.call(.request("POST", "http://origin.example/?q=a&s=2")).value
        #expect(try await bench.call(.get("http://origin.example/?q=a&s=3")).value.body == "answer 3")
        held.increment()
        #expect(try await before.value.body == "answer 1")
    }

    @Test("A store that cannot take the response does not withhold it from waiting callers", arguments: [true, false])
    func storeCannotTake(_ fails: Bool) async throws {
        let store = FaultyStore()
        if fails { store.fault.withLock { $0 = .write } }
        let bench = FetchBench(
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

    @Test("Two pipelines with one cache share the exchange; nested ones do not wait for themselves")
    func pipelines() async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") })
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

    @Test("A lookup that a finished fetch overtook looks again instead of sending")
    func overtakenLookUp() async throws {
        let store = FaultyStore()
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, cacheable, "one") }, store: store)
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
