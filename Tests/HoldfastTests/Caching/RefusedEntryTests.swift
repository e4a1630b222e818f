// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Stored responses that an acceptance refuses", .timeLimit(.minutes(20)))
struct RefusedEntryTests {
    @Test("The updates of a progress end with the response that the call returns, not with a refused stored one")
    func progressOfRefused() async throws {
        let bench = CacheBench([.respond(200, cacheable, body: "bad"), .respond(200, cacheable, body: "better")])
        try await bench.load()
        let progress = TransferProgress()
        var options = CallOptions()
        options.progress = progress
        options.acceptance = Acceptance { response in
            if response.source == .fresh { throw Refused(reason: "stored") }
        }
        #expect(try await bench.load(.get(), options) == .network("better"))
        var last: TransferProgress.Update?
        for await update in progress.updates { last = update }
        #expect(last == TransferProgress.Update(completed: 6, total: 6))
    }

    @Test("S-T33, D-T17: a stored response that the acceptance refuses is removed, and the call is sent once more")
    func refusedFromStore() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=60"], body: "bad"),
            .respond(200, ["Cache-Control": "max-age=60"], body: "good"),
            .respond(200, ["Cache-Control": "max-age=60"], body: "never"),
        ])
        try await bench.load()
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "bad".utf8) { throw Refused(reason: "bad") }
        }
        #expect(try await bench.load(.get(), options) == .network("good"))
        #expect(try await bench.load(.get(), options) == .fresh("good"))
        // The refused hit counts, and so does the request that follows it.
        let counted = bench.cache.statistics
        #expect(counted.requests == 4 && counted.hits == 2 && counted.misses == 1 && counted.bypasses == 1)
        options.acceptance = Acceptance { _ in throw Refused(reason: "nothing pleases") }
        await #expect(throws: Refused(reason: "nothing pleases")) { try await bench.load(.get(), options) }
        #expect(bench.sends == 3)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("The same for a pipeline whose transport is the one with the cache")
    func refusedFromStoreBelow() async throws {
        let transport = ScriptedTransport(
            ["bad", "good"].map { .respond(200, ["Cache-Control": "max-age=60"], body: $0) }
        )
        let inner = Pipeline(transport: transport, cache: .inMemory())
        let outer = Pipeline(transport: inner)
        _ = try await outer.send(.get()).body.collect()
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "bad".utf8) { throw Refused(reason: "bad") }
        }
        let response = try await outer.send(.get(), options: options)
        #expect(try await response.body.collect() == ByteChunk(copying: "good".utf8))
        #expect(transport.sent.count == 2)
    }

    @Test("A stored response that is longer than one caller wants to read stays for the others")
    func longerThanWanted() async throws {
        let bench = CacheBench([.respond(200, cacheable, body: "long")])
        try await bench.load()
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            response.body = ResponseBody(try await response.body.collect(upTo: 3))
        }
        let error = await #expect(throws: ServiceError.self) { try await bench.load(.get(), options) }
        #expect(error?.code == .bodyTooLarge)
        #expect(try await bench.load() == .fresh("long"))
        #expect(bench.sends == 1)
    }

    @Test("A response that one call has refused answers no later call", arguments: [true, false])
    func refusedIsNotJoined(streams: Bool) async throws {
        for _ in 0..<300 {
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            let transport = ScriptedTransport(
                ["bad", "good"].map { streams ? .stream(200, fields, chunks: [$0]) : .respond(200, fields, body: $0) }
            )
            let pipeline = Pipeline(transport: transport, cache: .inMemory())
            var options = CallOptions()
            options.acceptance = Acceptance { response in
                let content = try await response.body.collect()
                response.body = ResponseBody(content)
                if content == ByteChunk(copying: "bad".utf8) { throw Refused(reason: "bad") }
            }
            await #expect(throws: Refused.self) { try await pipeline.send(.get(), options: options) }
            let content = try await pipeline.send(.get(), options: options).body.collect()
            #expect(content == ByteChunk(copying: "good".utf8))
        }
    }

    @Test("A stale response is revalidated in the background once its caller has accepted it, not if it is refused")
    func staleIsRefreshedOnceAccepted() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=5, stale-while-revalidate=60"]
        let bench = CacheBench(["first", "second", "third"].map { .respond(200, fields, body: $0) })
        try await bench.load()
        bench.clock.advance(by: .seconds(6))
        var options = CallOptions()
        options.acceptance = Acceptance { [transport = bench.transport] response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "first".utf8) {
                #expect(transport.sent.count == 1)
                throw Refused(reason: "first")
            }
        }
        #expect(try await bench.load(.get(), options) == .network("second"))
        await bench.pipeline.drain()
        #expect(bench.sends == 2)
        #expect(bench.cache.statistics.backgroundRevalidations == 0)
        bench.clock.advance(by: .seconds(6))
        let stale = try await bench.load(.get(), options)
        #expect(stale.source == .stale && stale.body == "second")
        await bench.pipeline.drain()
        #expect(bench.sends == 3)
        #expect(bench.cache.statistics.backgroundRevalidations == 1)
        #expect(try await bench.load(.get(), options) == .fresh("third"))
    }

    @Test("A refused stored response is not fetched again if the call may not send")
    func refusedOnlyIfCached() async throws {
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60"], body: "bad")])
        try await bench.load()
        var options = CallOptions()
        options.cache = .onlyIfCached
        options.acceptance = Acceptance { _ in throw Refused(reason: "bad") }
        await #expect(throws: Refused(reason: "bad")) { try await bench.load(.get(), options) }
        #expect(bench.sends == 1)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("A typed call's response is kept only if its acceptance accepts it")
    func acceptance() async throws {
        let bench = CacheBench([
            .respond(200, ["Cache-Control": "max-age=60"], body: "bad"),
            .respond(200, ["Cache-Control": "max-age=60"], body: "good"),
        ])
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "bad".utf8) { throw Refused() }
        }
        await #expect(throws: Refused.self) { try await bench.load(.get(), options) }
        #expect(bench.cache.store.statistics.entryCount == 0)
        try await bench.load(.get(), options)
        #expect(try await bench.load(.get(), options) == .fresh("good"))
    }

    @Test(
        "The result of a background refresh is checked by the call that started it",
        arguments: [200, 404]
    )
    func refusedRefresh(status: Int) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1, stale-while-revalidate=600"]
        let bench = CacheBench([
            .respond(200, fields, body: "good"),
            .respond(status, fields, body: "bad"),
            .respond(200, fields, body: "better"),
        ])
        var options = CallOptions()
        let check: @Sendable (inout Response) async throws -> Void = { response in
            guard response.status == .ok else { throw Refused(reason: "status") }
            let bytes = try await response.body.collect()
            response.body = ResponseBody(bytes)
            if bytes == ByteChunk(copying: "bad".utf8) { throw Refused(reason: "bad") }
        }
        options.acceptance = Acceptance(check)
        options.acceptance?.checkRefresh = check
        try await bench.load(.get(), options)
        for sends in [2, 3] {
            bench.clock.advance(by: .seconds(11))
            #expect(try await bench.load(.get(), options).body == "good")
            await bench.pipeline.drain()
            #expect(bench.sends == sends)
        }
        #expect(try await bench.load(.get(), options) == .fresh("better"))
    }

    @Test("If a hook observes responses, a refresh is not checked until it is used")
    func uncheckedRefresh() async throws {
        struct Decoding: ServiceHook {
            var scope: HookScope { .message }
            func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws
            {
                response.fields.append("X-Decoded", "yes")
            }
        }
        let fields: HeaderFields = ["Cache-Control": "max-age=1, stale-while-revalidate=600"]
        let transport = ScriptedTransport([
            .respond(200, fields, body: "good"), .respond(200, fields, body: "better"),
        ])
        let bench = CacheBench(transport, hooks: [Decoding()])
        var options = CallOptions()
        let check: @Sendable (inout Response) async throws -> Void = { response in
            guard response.fields.contains("X-Decoded") else { throw Refused(reason: "not decoded") }
        }
        options.acceptance = Acceptance(check)
        options.acceptance?.checkRefresh = check
        try await bench.load(.get(), options)
        bench.clock.advance(by: .seconds(2))
        #expect(try await bench.load(.get(), options).body == "good")
        await bench.pipeline.drain()
        #expect(try await bench.load(.get(), options) == .fresh("better"))
    }

    @Test("A refresh whose body is truncated leaves the stale response in place")
    func brokenRefresh() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1, stale-while-revalidate=600", "ETag": "\"1\""]
        let lost = ServiceError(.connectionLost, "scripted")
        let bench = CacheBench([
            .respond(200, fields, body: "good"),
            .stream(200, fields.merging(["ETag": "\"2\""]), chunks: ["hal"], length: 6, failure: lost),
        ])
        try await bench.load()
        bench.clock.advance(by: .seconds(5))
        #expect(try await bench.load().body == "good")
        await bench.pipeline.drain()
        bench.clock.advance(by: .seconds(5))
        var options = CallOptions()
        options.cache = CacheDirective(onlyIfCached: true, maxStale: .seconds(600))
        #expect(try await bench.load(.get(), options).body == "good")
    }

    @Test("A call that comes while the first caller checks the response gets it and sends nothing")
    func duringAcceptance() async throws {
        let bench = CacheBench([.respond(200, ["Cache-Control": "max-age=60"], body: "1")])
        var options = CallOptions()
        options.acceptance = Acceptance { _ in
            let second = try await bench.load()
            #expect(second == CacheBench.Answer(status: 200, body: "1", source: .collapsed))
        }
        #expect(try await bench.load(.get(), options) == .network("1"))
        #expect(bench.sends == 1)
        #expect(try await bench.load() == .fresh("1"))
    }

    @Test("A POST that a redirect has answered is not sent again if the stored target is refused (RFC 9110 §9.2.2)")
    func refusedAfterPost() async throws {
        let transport = ScriptedTransport { request in
            switch request.url?.path {
            case "/orders": .respond(303, ["Location": "/orders/1"])
            case "/orders/1": .respond(302, ["Location": "/list"])
            default: .respond(404, cacheable, body: "none")
            }
        }
        let bench = CacheBench(transport)
        try await bench.load(.get("http://origin.example/list"))
        var options = CallOptions()
        options.acceptance = .successful
        await #expect(throws: ServiceError.self) {
            try await bench.pipeline.send(
                .request("POST", "http://origin.example/orders"),
                body: .bytes(ByteChunk([1])),
                options: options
            )
        }
        #expect(transport.sent.map { $0.request.url?.path } == ["/list", "/orders", "/orders/1"])
    }

    @Test("A call that is sent once more begins at its own origin, with what belongs there and with all its redirects")
    func refusedAtForeignHop() async throws {
        let transport = ScriptedTransport { request in
            request.url?.host == "origin.example"
                ? .respond(302, ["Location": "http://other.example/b"]) : .respond(404, cacheable, body: "none")
        }
        let bench = CacheBench(transport) { configuration in
            configuration.redirects = .follow(limit: 1)
            configuration.prepare = [{ request, _ in request.setValue("k", forHTTPHeaderField: "X-Api-Key") }]
        }
        try await bench.load()
        var options = CallOptions()
        options.acceptance = .successful
        let error = await #expect(throws: ServiceError.self) { try await bench.load(.get(), options) }
        #expect(error?.code == .unacceptableStatus)
        // a, b; a, the refused hit; a, b.
        #expect(bench.sent("X-Api-Key") == ["k", nil, "k", "k", nil])
    }

    @Test("A stored response stays if the call ran out of time while its content was read")
    func outOfTime() async throws {
        let step = ScriptedTransport.Step.respond(200, ["Cache-Control": "max-age=60"], body: "good")
        let bench = CacheBench([step, step])
        try await bench.load()
        var options = CallOptions()
        options.acceptance = Acceptance { _ in throw ServiceError(.deadlineExceeded, "scripted") }
        await #expect(throws: ServiceError.self) { try await bench.load(.get(), options) }
        #expect(bench.sends == 1)
        #expect(bench.cache.store.statistics.entryCount == 1)
    }

    @Test("A POST that only asks is sent once more if what a 307 led to is refused")
    func refusedAfterAsking() async throws {
        let answers = CountWatch()
        let transport = ScriptedTransport { request in
            if request.url?.path == "/q" { return .respond(307, ["Location": "/v2/q"]) }
            answers.increment()
            return answers.count == 1 ? .respond(404, cacheable, body: "none") : .respond(200, cacheable, body: "found")
        }
        let bench = CacheBench(transport)
        var options = CallOptions()
        options.cachesContent = .raw
        let asking = URLRequest.request("POST", "http://origin.example/q")
        let body = RequestBody.bytes(ByteChunk([1]))
        _ = try await bench.pipeline.send(asking, body: body, options: options).body.collect()
        options.acceptance = .successful
        #expect(try await bench.pipeline.send(asking, body: body, options: options).status == .ok)
    }
}
