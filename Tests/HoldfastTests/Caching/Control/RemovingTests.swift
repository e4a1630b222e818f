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

@Suite("Removing by selection", .timeLimit(.minutes(20)))
struct RemovingTests {
    /// A selection and what it takes of ``fill(_:)``.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let taken: Set<String>
        let selection: @Sendable () throws -> CacheSelection
        var testDescription: String { name }

        init(_ name: String, _ taken: Set<String>, _ selection: @escaping @Sendable () throws -> CacheSelection) {
            self.name = name
            self.taken = taken
            self.selection = selection
        }
    }

    static let all: Set<String> = ["img", "img/1", "imgs", "user", "named", "other"]

    static let cases: [Case] = [
        Case("all", all) { .all },
        Case("URL, in any spelling", ["img"]) { .url(try url("HTTP://H.example:80/%69mg#x")) },
        Case("URL of a user's response too", ["user"]) { .url(try url("http://h.example/user")) },
        Case("no HTTP URL", []) { .url(try url("ftp://h.example/img")) },
        Case("path", ["img", "img/1"]) { .path(try url("http://h.example/img")) },
        Case("origin", all.subtracting(["other"])) { .path(try url("http://h.example")) },
        Case("no HTTP path", []) { .path(try url("ftp://h.example/")) },
        Case("prefix of a path", ["img", "img/1", "imgs"]) { .prefix("/im") },
        Case("prefix of a path, in another spelling", ["imgs"]) { .prefix("/%69mgs") },
        Case("prefix of a URL", ["img", "img/1", "imgs"]) { .prefix("HTTP://H.example:80/img") },
        Case("prefix of a host", all) { .prefix("http://") },
        Case("prefix of nothing stored", []) { .prefix("http://h.exampl/") },
        Case("the empty prefix", all) { .prefix("") },
        Case("tag", ["img/1", "other"]) { .tag("t") },
        Case("principal", ["named"]) { .principal("ann") },
        Case("unknown principal", []) { .principal("") },
        Case("credentials", ["user"]) { .principal(of: .get("http://h.example/", ["Authorization": "u"])) },
        Case("credentials that the transport adds", ["user"]) {
            .principal(of: .get("http://h.example/"), adding: ["Authorization": "u"])
        },
        Case("no credentials select nothing, least of all what is everyone's", []) {
            .principal(of: .get("http://h.example/img"))
        },
        Case("predicate", ["imgs"]) { .matching { $0.status == .notFound && $0.method == .get } },
        Case("predicate over partitions", ["user", "named"]) { .matching { $0.isPersonal } },
        Case("predicate over tags and sizes", ["other"]) {
            .matching {
                $0.tags == ["t"] && $0.bodyLength == 5 && $0.target.host == "other.example" && $0.headLength > 5
                    && !$0.isPinned
            }
        },
        Case("predicate over ages", ["other"]) { .matching { $0.age == 0 && $0.freshnessLeft == 60 && $0.isFresh } },
        Case("older than", all.subtracting(["other"])) { .olderThan(.seconds(9)) },
        Case("not older than", []) { .olderThan(.seconds(10)) },
    ]

    static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// A bench with one response of each name, the last one ten seconds younger.
    static func fill(_ store: any CacheStore) async throws -> CacheBench {
        let transport = ScriptedTransport { request in
            let path = String(request.url?.path.dropFirst() ?? "")
            if request.value(forHTTPHeaderField: "If-None-Match") != nil { return .respond(304) }
            return .respond(
                path == "imgs" ? 404 : 200,
                ["Cache-Control": "max-age=60", "ETag": "\"v\""],
                body: path
            )
        }
        let bench = CacheBench(transport, store: store)
        for name in ["img", "img/1", "imgs", "user", "named"] { try await load(name, bench) }
        bench.clock.advance(by: .seconds(10))
        try await load("other", bench)
        return bench
    }

    @discardableResult
    static func load(_ name: String, _ bench: CacheBench) async throws -> CacheBench.Answer {
        var options = CallOptions()
        if name == "img/1" || name == "other" { options.tags = ["t"] }
        if name == "named" { options.principal = "ann" }
        let host = name == "other" ? "other.example" : "h.example"
        let request = URLRequest.get("http://\(host)/\(name)", name == "user" ? ["Authorization": "u"] : [:])
        return try await bench.load(request, options)
    }

    @Test("Hard: the selected entries are gone, and nothing else", arguments: EachStore.allCases, cases)
    func hard(kind: EachStore, example: Case) async throws {
        try await kind.with { store in
            let bench = try await Self.fill(store)
            let removed = try await bench.cache.remove(try example.selection(), now: bench.time)
            // A store may mark a tag as gone without counting.
            if let removed {
                #expect(removed == example.taken.count)
                #expect(store.statistics.entryCount == Self.all.count - removed)
            }
            for name in Self.all {
                let source = try await Self.load(name, bench).source
                #expect(source == (example.taken.contains(name) ? .network(attempts: 1) : .fresh), "\(name)")
            }
        }
    }

    @Test(
        "Softly: kept, and revalidated before the next use; the rest stays fresh (RFC 9111 §4.4)",
        arguments: EachStore.allCases,
        cases
    )
    func soft(kind: EachStore, example: Case) async throws {
        try await kind.with { store in
            let bench = try await Self.fill(store)
            for _ in 0..<2 {
                let marked = try await bench.cache.markStale(try example.selection(), now: bench.time)
                // Marked twice is marked once; a predicate may ask for what is no longer so.
                if example.name != "predicate over ages" { #expect(marked == example.taken.count) }
            }
            #expect(store.statistics.entryCount == Self.all.count)
            for name in Self.all {
                let answer = try await Self.load(name, bench)
                #expect(answer.source == (example.taken.contains(name) ? .revalidated : .fresh), "\(name)")
                #expect(answer.body == name)
                #expect(try await Self.load(name, bench).source == .fresh)
            }
        }
    }

    @Test("A predicate also removes responses that are being stored if it is true for them", arguments: ["/a", "/b"])
    func beingStored(path: String) async throws {
        let transport = ScriptedTransport { _ in .stream(200, ["Cache-Control": "max-age=60"], chunks: ["x"]) }
        let bench = CacheBench(transport)
        var bodies: [ResponseBody] = []
        for path in ["/a", "/b"] { bodies.append(try await bench.pipeline.send(.get("http://h.example\(path)")).body) }
        let selection = CacheSelection.matching { $0.target.canonical.hasSuffix(path) }
        try await bench.cache.remove(selection, now: bench.time)
        for body in bodies { _ = try await body.collect() }
        await bench.pipeline.drain()
        for other in ["/a", "/b"] {
            let source = try await bench.load(.get("http://h.example\(other)")).source
            #expect(source == (other == path ? .network(attempts: 1) : .fresh), "\(other)")
        }
    }

    @Test("A request that is sent before a removal has ended stores nothing of what was removed (RFC 9111 §3.4)")
    func begunMeanwhile() async throws {
        let store = FaultyStore()
        let first: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Content-Range": "bytes 0-3/8"]
        let second: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Content-Range": "bytes 4-7/8"]
        let rest = CountWatch()
        let transport = ScriptedTransport { request in
            switch request.value(forHTTPHeaderField: "Range") {
            case "bytes=0-3": return .respond(206, first, body: "abcd")
            case nil:
                try await rest.wait(for: 1)
                return .respond(200, ["Cache-Control": "max-age=60"], body: "whole")
            default:
                try await rest.wait(for: 1)
                return .respond(206, second, body: "efgh")
            }
        }
        let bench = CacheBench(transport, store: store)
        try await bench.load(.get("http://origin.example/a", ["Range": "bytes=0-3"]))
        store.stallsPurges.store(true, ordering: .relaxed)
        let removal = Task { try await bench.cache.remove(.all, now: bench.time) }
        try await store.purges.wait(for: 1)
        let call = Task { try await bench.load(.get("http://origin.example/a")) }
        try await transport.waitForSends(2)
        store.gate.increment()
        _ = try await removal.value
        rest.increment()
        // It sends for all of it, since the part is going to be removed.
        #expect(try await call.value.body == "whole")
        #expect(store.statistics.entryCount == 0)
        // After the removal, responses are stored again.
        #expect(try await bench.load(.get("http://origin.example/a")) == .network("whole"))
        #expect(try await bench.load(.get("http://origin.example/a")) == .fresh("whole"))
    }

    @Test("One call removes a user's entries at logout, and nobody else's")
    func logout() async throws {
        let bench = try await Self.fill(MemoryStore(capacity: 1 << 20))
        #expect(try await bench.cache.remove(.principal("ann")) == 1)
        #expect(try await bench.cache.remove(.principal("ann")) == 0)
        #expect(try await Self.load("user", bench).source == .fresh)
    }

    @Test("A marked entry says so, and a 304 removes the mark")
    func info() async throws {
        let bench = try await Self.fill(MemoryStore(capacity: 1 << 20))
        try await bench.cache.markStale(.tag("t"))
        try await Self.load("other", bench)
        let marked = CacheSelection.matching { $0.needsConfirmation && !$0.isFresh }
        #expect(try await bench.cache.remove(marked, now: bench.time) == 1)
    }

    @Test(
        "A prefix may end anywhere in a URL",
        arguments: [
            ("/img/.", "http://h.example/img/1", false), ("/img/.", "http://h.example/img/.x", true),
            ("/..", "http://h.example/img", false), ("/%7Eu/caf%C", "http://h.example/~u/caf%C3%A9", true),
            ("/caf%c", "http://h.example/caf%C3%A9", true),
            ("HTTP://H.example:80/caf%", "http://h.example/caf%C3%A9", true), ("/im", "http://h.example/img", true),
            ("http://h.exampl/", "http://h.example/img", false), ("http://h.ex", "http://h.example/img", true),
            ("#top", "http://h.example/img", false),
        ]
    )
    func unfinishedPrefix(text: String, target: String, isSelected: Bool) {
        #expect(TargetPrefix(text).matches(target) == isSelected)
    }
}
