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

@Suite("What an acceptance refuses, and the store", .timeLimit(.minutes(20)))
struct RefusedEntryTests {
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
        options.acceptance = Acceptance { _ in throw Refused(reason: "nothing pleases") }
        await #expect(throws: Refused(reason: "nothing pleases")) { try await bench.load(.get(), options) }
        #expect(bench.sends == 3)
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("A refused stored response is not sent for again where the call may not send")
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

    @Test("A typed call's response is kept only when its acceptance took it")
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
}
