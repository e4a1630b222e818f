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

@Suite("Requests whose content is in the key (RFC 10008)", .timeLimit(.minutes(20)))
struct ContentKeyTests {
    private static let posting: CallOptions = {
        var options = CallOptions()
        options.cachesContent = .raw
        return options
    }()

    @Test("RFC 10008: QUERY is stored under URI, content and content type")
    func query() async throws {
        let bench = CacheBench(.counting())
        #expect(try await bench.load(.asking("QUERY", "a=1")) == .network("1"))
        #expect(try await bench.load(.asking("QUERY", "a=1")) == .fresh("1"))
        #expect(try await bench.load(.asking("QUERY", "a=2")) == .network("2"))
        #expect(try await bench.load(.asking("QUERY", "a=1", type: "text/plain")) == .network("3"))
        #expect(try await bench.load(.asking("QUERY", "a=1", type: "Application/JSON")) == .fresh("1"))
        #expect(
            try await bench.load(.request("QUERY", "http://origin.example/a", ["Content-Type": "application/json"]))
                == .network("4")
        )
    }

    @Test("A stored QUERY or POST never answers a GET, nor the reverse", arguments: ["QUERY", "POST"])
    func apart(method: String) async throws {
        let bench = CacheBench(.counting())
        let asking = URLRequest.asking(method, "a=1")
        #expect(try await bench.load(asking, Self.posting) == .network("1"))
        #expect(try await bench.load(.get()) == .network("2"))
        #expect(try await bench.load(asking, Self.posting) == .fresh("1"))
        #expect(try await bench.load(.get()) == .fresh("2"))
        let other = URLRequest.asking(method == "QUERY" ? "POST" : "QUERY", "a=1")
        #expect(try await bench.load(other, Self.posting) == .network("3"))
    }

    @Test(
        "lysine-dev/okhttp#1969, #2945, karpetrosyan/hishel#203: POST is cached if a call or a rule says it only queries"
    )
    func post() async throws {
        let bench = CacheBench(.counting())
        #expect(try await bench.load(.asking("POST", "a=1")) == .network("1"))
        #expect(try await bench.load(.asking("POST", "a=1")) == .network("2"))
        #expect(try await bench.load(.asking("POST", "a=1"), Self.posting) == .network("3"))
        #expect(try await bench.load(.asking("POST", "a=1"), Self.posting) == .fresh("3"))

        var options = CacheOptions()
        options.rules = [
            try CacheRule(hosts: ["origin.example"], paths: ["/graphql"], content: .graphQL, cachesPost: true)
        ]
        let ruled = CacheBench(options: options, .counting())
        let url = "http://origin.example/graphql"
        #expect(try await ruled.load(.asking("POST", url, #"{"query":"{a}"}"#)) == .network("1"))
        #expect(try await ruled.load(.asking("POST", url, #"{ "variables": null, "query": "{a}" }"#)) == .fresh("1"))
        #expect(try await ruled.load(.asking("POST", url, #"{"query":"{b}"}"#)) == .network("2"))
        #expect(try await ruled.load(.asking("POST", url, #"{"query":"{a}"}"#)) == .fresh("1"))
        #expect(try await ruled.load(.asking("POST", "http://origin.example/a", "{}")) == .network("3"))
        #expect(try await ruled.load(.asking("POST", "http://origin.example/a", "{}")) == .network("4"))
    }

    @Test("An unsafe request removes what was stored under all contents of its URI, and no other URI's (RFC 9111 §4.4)")
    func invalidation() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(.asking("QUERY", "a=1"))
        try await bench.load(.asking("POST", "a=1"), Self.posting)
        try await bench.load(.asking("QUERY", "http://origin.example/ab", "a=1"))
        try await bench.load(.request("PUT", "http://origin.example/a"))
        #expect(try await bench.load(.asking("QUERY", "a=1")) == .network("5"))
        #expect(try await bench.load(.asking("POST", "a=1"), Self.posting) == .network("6"))
        #expect(try await bench.load(.asking("QUERY", "http://origin.example/ab", "a=1")) == .fresh("3"))
    }

    @Test("Content above the limit, in a file or in a stream bypasses the cache and says why")
    func bypasses() async throws {
        var options = CacheOptions()
        options.maximumKeyContent = 8
        let bench = CacheBench(options: options, .counting())
        #expect(try await bench.load(.asking("QUERY", "12345678")) == .network("1"))
        #expect(try await bench.load(.asking("QUERY", "12345678")) == .fresh("1"))
        let bodies: [RequestBody] = [
            .data(Data("123456789".utf8)), .factory { OnceBytes() }, .oneShot(OnceBytes()),
        ]
        for body in bodies {
            for _ in 0..<2 {
                let response = try await bench.pipeline.send(.request("QUERY", "http://origin.example/a"), body: body)
                #expect(response.source == .network(attempts: 1))
                #expect(response.cacheDecision?.reason == .content && response.cacheDecision?.outcome == .bypass)
            }
        }
    }

    @Test("A user's QUERY is used for nobody else, and no-store keeps it out")
    func rules() async throws {
        let bench = CacheBench(.counting())
        try await bench.load(.asking("QUERY", "http://h.example/", "a", ["Authorization": "a"]))
        #expect(
            try await bench.load(.asking("QUERY", "http://h.example/", "a", ["Authorization": "b"])) == .network("2")
        )
        let secret = CacheBench(.counting { _ in ["Cache-Control": "no-store"] })
        try await secret.load(.asking("QUERY", "a"))
        #expect(try await secret.load(.asking("QUERY", "a")) == .network("2"))
    }

    @Test("If a prepare step changes the content type, the response is not stored")
    func prepared() async throws {
        let transport = ScriptedTransport.counting()
        let bench = CacheBench(transport) { configuration in
            configuration.prepare = [{ request, _ in request.setValue("text/x", forHTTPHeaderField: "Content-Type") }]
        }
        try await bench.load(.asking("QUERY", "a"))
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test("A stale QUERY is revalidated by a conditional QUERY with its content")
    func validation() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "ETag": "\"a\""]
        let bench = CacheBench(
            ScriptedTransport { request in
                request.value(forHTTPHeaderField: "If-None-Match") == nil
                    ? .respond(200, fields, body: "one") : .respond(304, fields)
            }
        )
        try await bench.load(.asking("QUERY", "a"))
        bench.clock.advance(by: .seconds(5))
        #expect(try await bench.load(.asking("QUERY", "a")) == .revalidated("one"))
        #expect(bench.transport.sent.last?.body?.array == Array("a".utf8))
    }

    @Test(
        "RFC 9110 §13.1.2: a stale POST is sent again without a condition, since a false one would have to be answered with 412",
        arguments: [("POST", nil), ("QUERY", "\"a\"")] as [(String, String?)]
    )
    func condition(method: String, sent: String?) async throws {
        let bench = CacheBench(.counting { _ in ["Cache-Control": "max-age=60", "ETag": "\"a\""] })
        for number in 1...2 {
            #expect(try await bench.load(.asking(method, "a=1"), Self.posting) == .network("\(number)"))
            bench.clock.advance(by: .seconds(61))
        }
        #expect(bench.sent("If-None-Match") == [nil, sent])
    }

    @Test("A QUERY that arrives while the content of an equal one is still being received gets it from the beginning")
    func arrivesDuringBody() async throws {
        let source = GatedSource([ByteChunk(copying: "one".utf8), ByteChunk(copying: " two".utf8)])
        let bench = FetchBench(GatedOrigin { _, _ in .stream(200, ["Cache-Control": "max-age=60"], source, nil) })
        bench.origin.open(2)
        let first = try await bench.pipeline.send(.asking("QUERY", "a"))
        source.open()
        #expect(try await first.body.source?.next() == ByteChunk(copying: "one".utf8))
        let second = bench.call(.asking("QUERY", "a"))
        await bench.waitForReaders(2)
        source.open(2)
        #expect(try await second.value == .collapsed("one two"))
        #expect(try await first.body.source?.next() == ByteChunk(copying: " two".utf8))
        #expect(bench.sends == 1)
    }

    @Test("Equal QUERY requests share one exchange, others do not")
    func collapsed() async throws {
        let numbers = AnswerNumbers()
        let transport = ScriptedTransport { _ in
            .respond(200, ["Cache-Control": "max-age=60"], body: String(numbers.next())).delayed(by: .seconds(1))
        }
        let bench = CacheBench(transport)
        let calls = ["a", "a", "a", "b"].map { content in
            Task { try await bench.text(.asking("QUERY", content)) }
        }
        try await transport.waitForSends(2)
        try await bench.clock.waitForSleeps(2)
        bench.clock.advance(by: .seconds(1))
        var bodies: [String] = []
        for call in calls { bodies.append(try await call.value) }
        #expect(Set(bodies[0..<3]).count == 1 && bodies[3] != bodies[0] && transport.sent.count == 2)
    }

    @Test("What the disk cannot record does not keep the rest from being invalidated (RFC 9111 §4.4)")
    func unrecordedInvalidation() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await DiskStore.open(
            directory: "/cache",
            capacity: 8 << 20,
            fileSystem: files,
            now: StoreInstant(milliseconds: 1_700_000_000_000)
        )
        let bench = CacheBench(.counting(), store: store)
        try await bench.load()
        try await bench.load(.asking("QUERY", "a=1"))
        files.plan(.always(errno: 30).only("write"))
        try await bench.load(.request("PUT", "http://origin.example/a"))
        files.plan()
        #expect(try await bench.load() == .network("4"))
        #expect(try await bench.load(.asking("QUERY", "a=1")) == .network("5"))
        await store.close()
    }
}

/// One byte.
private final class OnceBytes: ByteSource {
    private let numbers = AnswerNumbers()

    func next() async throws -> ByteChunk? {
        numbers.next() == 1 ? ByteChunk([97]) : nil
    }

    func cancel() {}
}
