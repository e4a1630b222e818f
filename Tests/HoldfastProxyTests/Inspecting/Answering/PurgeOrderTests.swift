// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("Purging by the inspector", .timeLimit(.minutes(20)))
    struct PurgeOrderTests {
        @Test("A purge of several tags asks the store for each, although the first one fails")
        func severalFail() async throws {
            let store = BrokenStore()
            let cache = HTTPCache(store: store, options: .shared)
            let desk = AdminDesk(
                cache: { cache },
                metrics: ProxyMetrics(),
                token: nil,
                guarding: InspectorGuard(port: InspectorBench.port),
                inspector: nil,
                origin: nil,
                unready: { nil },
                connections: { nil }
            )
            let response = await desk.answer(.page(.post, "/purge?tag=a&tag=b&tag=c"))
            #expect(response.status == 500)
            #expect(store.purges.count == 3)
        }

        private static func filled() async throws -> InspectorBench {
            let bench = InspectorBench { _ in
                .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"v\"", "Vary": "Accept-Language"], body: "x")
            }
            for (path, language, tag) in [("a/1", "de", "x"), ("a/1", "en", "x"), ("a/2", "de", "y"), ("b", "de", "y")]
            {
                try await bench.load("http://origin.example/\(path)", ["Accept-Language": language], tags: [tag])
            }
            return bench
        }

        private static func left(_ bench: InspectorBench) async throws -> Int { try await bench.entries().count }

        @Test(
            "Everything, a tag or a prefix: what was meant is removed, and nothing else",
            arguments: [
                (#"{"selection": "all", "soft": false}"#, 0),
                (#"{"selection": "tag", "value": "x", "soft": false}"#, 2),
                (#"{"selection": "tag", "value": "z", "soft": false}"#, 4),
                (#"{"selection": "prefix", "value": "http://origin.example/a", "soft": false}"#, 1),
                (#"{"selection": "prefix", "value": "HTTP://ORIGIN.example:80", "soft": false}"#, 0),
                (#"{"selection": "prefix", "value": "http://other.example/", "soft": false}"#, 4),
            ]
        )
        func selections(order: String, left: Int) async throws {
            let bench = try await Self.filled()
            let (status, text) = try await bench.purge(order)
            #expect(status == 200)
            if !order.contains("all") { #expect(text == #"{"count":\#(4 - left)}"#) }
            #expect(try await Self.left(bench) == left)
        }

        @Test("One entry: only that variant is removed")
        func entry() async throws {
            let bench = try await Self.filled()
            let variants = try await bench.entries("?search=a/1")
            #expect(variants.count == 2)
            let id = try #require(variants.first?["id"] as? String)
            let (status, text) = try await bench.purge(#"{"selection": "entry", "value": "\#(id)", "soft": false}"#)
            #expect((status, text) == (200, #"{"count":1}"#))
            #expect(
                try await bench.entries("?search=a/1").compactMap { $0["id"] as? String } == [
                    variants[1]["id"] as? String
                ]
            )
            #expect(try await Self.left(bench) == 3)
        }

        @Test("Softly: the entry stays and is revalidated before use")
        func softly() async throws {
            let bench = try await Self.filled()
            let id = try #require(try await bench.entries("?search=/b").first?["id"] as? String)
            let (status, _) = try await bench.purge(#"{"selection": "entry", "value": "\#(id)", "soft": true}"#)
            #expect(status == 200)
            let marked = try await bench.entries().filter { $0["needsConfirmation"] as? Bool == true }
            #expect(marked.compactMap { $0["id"] as? String } == [id])
            #expect(try await Self.left(bench) == 4)
            try await bench.load("http://origin.example/b", ["Accept-Language": "de"])
            let decision = bench.model.lastDecisions(of: ["http://origin.example/b"]).first??.decision
            #expect(decision?.reason == .softPurged)
        }

        @Test(
            "An invalid purge changes nothing",
            arguments: [
                "", "{}", "[]", "null", "{", #"{"selection": "all"}"#,
                #"{"selection": "all", "value": "x", "soft": false}"#,
                #"{"selection": "tag", "soft": false}"#, #"{"selection": "tag", "value": "", "soft": false}"#,
                #"{"selection": "prefix", "value": "", "soft": false}"#,
                #"{"selection": "prefix", "value": "/a", "soft": false}"#,
                #"{"selection": "prefix", "value": "ftp://origin.example/", "soft": false}"#,
                #"{"selection": "entry", "value": "0", "soft": false}"#,
                #"{"selection": "other", "value": "a", "soft": false}"#,
                String(repeating: "[", count: 10_000), #"{"selection": "all", "soft": "no"}"#,
            ]
        )
        func noOrder(order: String) async throws {
            let bench = try await Self.filled()
            let (status, _) = try await bench.purge(order)
            #expect([400, 404].contains(status))
            #expect(try await Self.left(bench) == 4)
        }

        @Test("A purge that is too long is not read to its end")
        func tooLong() async throws {
            let bench = try await Self.filled()
            let (status, _) = try await bench.purge(String(repeating: " ", count: PurgeRequest.longest + 1))
            #expect(status == 413)
            let endless = UnendingSource()
            let order = InspectorRequest.order("")
            let request = InspectorRequest.page(.post, "/api/purge", order.fields, body: .oneShot(endless))
            #expect(await bench.desk.answer(request).status == 413)
            #expect(endless.wasCancelled)
        }
    }

    /// A body without an end.
    private final class UnendingSource: ByteSource {
        private let cancelled = CountWatch()

        var wasCancelled: Bool { cancelled.count > 0 }

        func next() async throws -> ByteChunk? {
            if wasCancelled { throw CancellationError() }
            return ByteChunk([UInt8](repeating: 0x20, count: 4_096))
        }

        func cancel() { cancelled.increment() }
    }
#endif
