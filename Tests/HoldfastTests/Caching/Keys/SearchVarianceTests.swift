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

@Suite("No-Vary-Search: an equivalent query finds what was stored for another", .timeLimit(.minutes(20)))
struct SearchVarianceTests {
    private static func origin(_ value: String?, _ more: HeaderFields = [:]) -> ScriptedTransport {
        .counting { _ in
            var fields = more
            fields[.cacheControl] = "max-age=60"
            fields[.noVarySearch] = value
            return fields
        }
    }

    @Test("RFC 9111 §4.4: an equivalent is invalidated even if the caller is cancelled when the response has arrived")
    func cancelledCaller() async throws {
        let store = FaultyStore()
        store.obeysCancellation.store(true, ordering: .relaxed)
        let transport = NumberedTransport { number, _ in
            if number == 2 { withUnsafeCurrentTask { $0?.cancel() } }
            return .answer(200, ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"utm\")"], "\(number)")
        }
        var configuration = PipelineConfiguration()
        configuration.attemptTimeout = nil
        let pipeline = Pipeline(transport: transport, cache: HTTPCache(store: store), configuration: configuration)
        let stored = URLRequest.get("http://origin.example/a?q=1&utm=1")
        _ = try await pipeline.send(stored).body.collect()
        await Task { _ = try? await pipeline.send(.request("PUT", "http://origin.example/a?q=1")) }.value
        #expect(try await pipeline.send(stored).source == .network(attempts: 1))
    }

    @Test(
        "Reordered and ignored names",
        arguments: [
            ("key-order", "?b=1&a=2", "?a=2&b=1", true), ("key-order", "?b=1&a=2", "?a=2&b=2", false),
            ("params=(\"u\")", "?a=1&u=2", "?a=1", true), ("params=(\"u\")", "?a=1&u=2", "?a=2&u=2", false),
            ("params, except=(\"id\")", "?id=1&x=2", "?y=9&id=1", true), ("params", "?x=1", "", true),
            ("params=1", "?a=1&u=2", "?u=2&a=1", false), (nil, "?a=1&u=2", "?u=2&a=1", false),
        ] as [(String?, String, String, Bool)]
    )
    func equivalents(value: String?, stored: String, asked: String, answers: Bool) async throws {
        let bench = CacheBench(Self.origin(value))
        try await bench.load(.get("http://h.example/a\(stored)"))
        let answer = try await bench.load(.get("http://h.example/a\(asked)"))
        #expect(answer == (answers ? .fresh("1") : .network("2")))
        for other in ["http://h.example/b\(asked)", "http://i.example/a\(asked)"] {
            #expect(try await bench.load(.get(other)).source != .fresh)
        }
    }

    @Test("A purge by URL removes what answers for the URL, and nothing else", arguments: [false, true])
    func purged(softly: Bool) async throws {
        let bench = CacheBench(Self.origin("params=(\"u\")", ["ETag": "\"v\""]))
        try await bench.load(.get("http://h.example/a?a=1&u=2"))
        for other in ["http://h.example/a?a=2", "http://h.example/b?a=1", "http://i.example/a?a=1"] {
            let url = try #require(URL(string: other))
            #expect(try await bench.cache.purge(.url(url), softly: softly, now: bench.clock.timestamp) == 0)
        }
        #expect(try await bench.load(.get("http://h.example/a?a=1")) == .fresh("1"))
        let url = try #require(URL(string: "http://h.example/a?a=1"))
        #expect(try await bench.cache.purge(.url(url), softly: softly, now: bench.clock.timestamp) == 1)
        #expect(try await bench.load(.get("http://h.example/a?a=1")) == .network("2"))
    }

    @Test("Another user's or another variant's response is not used")
    func rules() async throws {
        let bench = CacheBench(Self.origin("key-order", ["Vary": "X"]))
        try await bench.load(.get("http://h.example/a?b&c", ["Authorization": "a"]))
        #expect(try await bench.load(.get("http://h.example/a?c&b", ["Authorization": "b"])) == .network("2"))
        #expect(
            try await bench.load(.get("http://h.example/a?c&b", ["Authorization": "a", "X": "1"])) == .network("3")
        )
    }

    @Test("What a newer response says about itself applies")
    func withdrawn() async throws {
        let numbers = AnswerNumbers()
        let bench = CacheBench(
            ScriptedTransport { _ in
                let number = numbers.next()
                var fields: HeaderFields = ["Cache-Control": "max-age=60"]
                if number == 1 { fields[.noVarySearch] = "key-order" }
                return .respond(200, fields, body: String(number))
            }
        )
        var reload = CallOptions()
        reload.cache = .reload
        try await bench.load(.get("http://h.example/a?b&c"))
        try await bench.load(.get("http://h.example/a?b&c"), reload)
        #expect(try await bench.load(.get("http://h.example/a?c&b")) == .network("3"))
    }

    @Test("RFC 9111 §4.4: an unsafe request to one of two equivalent URIs removes what is stored for the other")
    func invalidated() async throws {
        let bench = CacheBench(Self.origin("key-order"))
        try await bench.load(.get("http://h.example/a?b&c"))
        try await bench.load(.request("PUT", "http://h.example/a?c&b"))
        #expect(try await bench.load(.get("http://h.example/a?b&c")) == .network("3"))
    }

    @Test("A purge by URL counts responses and keeps what is remembered of the path")
    func purged() async throws {
        let bench = CacheBench(Self.origin("key-order"))
        try await bench.load(.get("http://h.example/a?b&c"))
        try await bench.load(.get("http://h.example/a"))
        let url = try #require(URL(string: "http://h.example/a"))
        #expect(try await bench.cache.remove(.url(url)) == 1)
        #expect(try await bench.load(.get("http://h.example/a?c&b")) == .fresh("1"))
    }

    @Test("It survives a restart with a disk store")
    func disk() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-nvs-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: path) }
        let start = StoreInstant(milliseconds: 0)
        let first = try await DiskStore.open(directory: path.path, capacity: 1 << 20, now: start)
        try await CacheBench(Self.origin("key-order"), store: first).load(.get("http://h.example/a?b&c"))
        await first.close()
        let second = try await DiskStore.open(directory: path.path, capacity: 1 << 20, now: start)
        let bench = CacheBench(Self.origin("key-order"), store: second)
        #expect(try await bench.load(.get("http://h.example/a?c&b")) == .fresh("1"))
        await second.close()
    }

    @Test("RFC 9111 §4, §4.4: of two equivalent stored URIs neither survives a newer response or a PUT")
    func bothStored() async throws {
        for isReloaded in [false, true] {
            let bench = CacheBench(Self.origin("params=(\"s\")"))
            var reload = CallOptions()
            reload.cache = .reload
            try await bench.load(.get("http://h.example/a?s=1"))
            try await bench.load(.get("http://h.example/a?s=2"), reload)
            #expect(try await bench.load(.get("http://h.example/a?s=1")) == .fresh("2"))
            if isReloaded {
                try await bench.load(.get("http://h.example/a?s=3"), reload)
            } else {
                try await bench.load(.request("PUT", "http://h.example/a?s=3"))
            }
            for query in ["s=1", "s=2", "s=3", "s=4"] {
                let answer = try await bench.load(.get("http://h.example/a?\(query)"))
                #expect(answer.body == (isReloaded ? "3" : "4"), "\(query)")
            }
        }
    }

    @Test("Endless new queries with the same meaning leave little behind")
    func boundedQueries() async throws {
        let bench = CacheBench(Self.origin("params=(\"s\")"))
        var reload = CallOptions()
        reload.cache = .reload
        for number in 0..<100 { try await bench.load(.get("http://h.example/a?s=\(number)"), reload) }
        #expect(try await bench.load(.get("http://h.example/a?s=1")) == .fresh("100"))
        #expect(bench.cache.store.statistics.entryCount <= 2 + 9)
    }

    @Test("Endless new field values stay within the store's bounds")
    func bounded() async throws {
        let numbers = AnswerNumbers()
        let bench = CacheBench(
            .counting { _ in ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"p\(numbers.next())\")"] }
        )
        for number in 0..<200 { try await bench.load(.get("http://h.example/a?n=\(number)")) }
        #expect(try await bench.load(.get("http://h.example/a?n=199")) == .fresh("200"))
        #expect(try await bench.load(.get("http://h.example/a?n=199&p200=x")) == .fresh("200"))
        #expect(bench.cache.store.statistics.entryCount <= 200 + 200 + 64)
    }

    /// How a response comes to be stored that answers for other queries too.
    enum Arrival: String, Sendable, CaseIterable {
        case part, joinedParts, notModified, head, contentKey
    }

    @Test(
        "RFC 9111 §4.4: an unsafe request to an equivalent URI removes what a part, a 304, a HEAD or content stored",
        arguments: Arrival.allCases
    )
    func invalidated(_ arrival: Arrival) async throws {
        let url = "http://h.example/a?a=1&u=2"
        let bytes = "0123456789"
        let seen = AnswerNumbers()
        let bench = CacheBench(
            ScriptedTransport { request in
                let number = seen.next()
                var fields: HeaderFields = ["ETag": "\"v\"", "Cache-Control": "max-age=60"]
                // News of a response brings the field that the response itself did not have.
                if number > 1 || arrival != .notModified && arrival != .head {
                    fields[.noVarySearch] = "params=(\"u\")"
                }
                if request.httpMethod == "DELETE" { return .respond(200) }
                if number == 2, arrival == .notModified { return .respond(304, fields) }
                if let range = request.value(forHTTPHeaderField: "Range") {
                    let isFirst = range == "bytes=0-4"
                    fields["Content-Range"] = isFirst ? "bytes 0-4/10" : "bytes 5-9/10"
                    return .respond(206, fields, body: String(isFirst ? bytes.prefix(5) : bytes.suffix(5)))
                }
                fields["Content-Length"] = "10"
                return .respond(200, fields, body: request.httpMethod == "HEAD" ? "" : bytes)
            }
        )
        var asking = CallOptions()
        func stored() async throws -> CacheBench.Answer {
            switch arrival {
            case .part: try await bench.load(.get(url, ["Range": "bytes=0-4"]))
            case .contentKey: try await bench.load(Self.post(url), asking)
            case .joinedParts, .notModified, .head: try await bench.load(.get(url))
            }
        }
        switch arrival {
        case .part: break
        case .joinedParts: try await bench.load(.get(url, ["Range": "bytes=5-9"]))
        case .notModified:
            try await bench.load(.get(url))
            var revalidate = CallOptions()
            revalidate.cache = .revalidate
            #expect(try await bench.load(.get(url), revalidate).source == .revalidated)
        case .head:
            try await bench.load(.get(url))
            var reload = CallOptions()
            reload.cache = .reload
            try await bench.load(.request("HEAD", url), reload)
        case .contentKey: asking.cachesContent = .raw
        }
        _ = try await stored()
        #expect(try await stored().source == .fresh)
        try await bench.load(.request("DELETE", "http://h.example/a?a=1"))
        #expect(try await stored().source == .network(attempts: 1))
    }

    private static func post(_ url: String) -> URLRequest {
        var request = URLRequest.request("POST", url)
        request.httpBody = Data("q=1".utf8)
        return request
    }
}
