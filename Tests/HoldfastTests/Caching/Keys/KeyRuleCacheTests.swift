// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Key rules change keys and nothing in the request", .timeLimit(.minutes(20)))
struct KeyRuleCacheTests {
    private func bench() throws -> CacheBench {
        var options = CacheOptions()
        options.rules = [
            try CacheRule(
                hosts: ["http://h.example"],
                query: QueryOptions(sortsNames: true, ignoredNames: ["utm_*"])
            )
        ]
        return CacheBench(options: options, .counting())
    }

    @Test(
        "requests-cache/requests-cache#29, #499: order and tracking parameters are ignored; the request stays unchanged"
    )
    func merged() async throws {
        let bench = try bench()
        #expect(try await bench.text(.get("http://h.example/a?b=1&a=2&utm_x=y")) == "1")
        #expect(try await bench.load(.get("http://h.example/a?a=2&b=1")) == .fresh("1"))
        #expect(try await bench.load(.get("http://h.example/a?a=2&b=2")) == .network("2"))
        #expect(try await bench.load(.get("http://other.example/a?b=1&a=2")) == .network("3"))
        #expect(try await bench.load(.get("http://other.example/a?a=2&b=1")) == .network("4"))
        #expect(bench.transport.sent.first?.request.url?.absoluteString == "http://h.example/a?b=1&a=2&utm_x=y")
    }

    @Test("An unsafe request and a purge use the same key, whatever the spelling (RFC 9111 §4.4)")
    func invalidated() async throws {
        let bench = try bench()
        try await bench.load(.get("http://h.example/a?b=1&a=2&utm_x=y"))
        try await bench.load(.request("DELETE", "http://h.example/a?a=2&utm_z=1&b=1"))
        #expect(try await bench.load(.get("http://h.example/a?a=2&b=1")) == .network("3"))
        let url = try #require(URL(string: "http://h.example/a?utm_q=1&b=1&a=2"))
        #expect(try await bench.cache.remove(.url(url)) == 1)
        #expect(try await bench.load(.get("http://h.example/a?a=2&b=1")) == .network("4"))
    }
}
