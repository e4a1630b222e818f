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

@Suite("Calls that do not share an exchange", .timeLimit(.minutes(20)))
struct SeparateExchangeTests {
    @Test(
        "A response that may not be shared releases the waiters at once, and nobody waits for 60 s",
        arguments: [("no-store", CacheOptions.Mode.private), ("private, max-age=9", .shared), ("no-store", .shared)]
    )
    func unshareable(_ cacheControl: String, _ mode: CacheOptions.Mode) async throws {
        let bench = FetchBench(
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

    @Test("A waiter with different nominated fields gets its own exchange, shared with similar ones")
    func vary() async throws {
        let bench = FetchBench(
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
        let bench = FetchBench(
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

    @Test("Later callers do not join a request sent before an invalidation or a purge", arguments: [true, false])
    func invalidated(_ byPurge: Bool) async throws {
        let bench = FetchBench(
            GatedOrigin { request, number in .answer(request.httpMethod == "PUT" ? 204 : 200, cacheable, "\(number)") }
        )
        let early = bench.calls(5)
        await bench.waitForReaders(5)
        let url = try #require(URLRequest.get().url)
        if byPurge {
            try await bench.cache.remove(.url(url))
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

    @Test(
        "A request that is not a plain GET is sent on its own",
        arguments: [
            .request("HEAD", "http://origin.example/a"), .get("http://origin.example/a", ["Range": "bytes=0-1"]),
            .get("http://origin.example/a", ["If-None-Match": "\"x\""]), .request("POST", "http://origin.example/a"),
        ] as [URLRequest]
    )
    func separate(_ request: URLRequest) async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, ["Cache-Control": "no-cache"], "one") })
        let calls = bench.calls(5, request)
        try await bench.origin.asked.wait(for: 5)
        bench.origin.open(5)
        for call in calls { _ = try await call.value }
    }

    @Test("reload and noStore are sent on their own", arguments: [CacheDirective.reload, .noStore])
    func directives(_ directive: CacheDirective) async throws {
        let bench = FetchBench(GatedOrigin { _, _ in .answer(200, ["Cache-Control": "no-cache"], "one") })
        var options = CallOptions()
        options.cache = directive
        let calls = bench.calls(5, .get(), options)
        try await bench.origin.asked.wait(for: 5)
        bench.origin.open(5)
        for call in calls { _ = try await call.value }
    }
}
