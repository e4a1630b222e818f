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

@Suite("An interrupted download continues where it stopped (RFC 9111 §3.3, §3.4)", .timeLimit(.minutes(20)))
struct InterruptedTransferTests {
    @Test(
        "The connection breaks after n bytes: the next call gets the rest (lysine-dev/okhttp#1997, nodejs/undici#4334)",
        arguments: StoreKind.allCases,
        [1, 4_000, 99_999]
    )
    func broken(_ kind: StoreKind, _ count: Int) async throws {
        let origin = RangeOrigin(length: 100_000) { $0.chunkSize = 1_000 }
        try await kind.withBench(origin) { bench in
            origin.change { $0.breaksAfter = count }
            try await bench.readBroken()
            #expect(try await bench.range(nil).body == origin.bytes())
            #expect(bench.sent("Range") == [nil, "bytes=\(count)-99999"])
            #expect(bench.sent("If-Range") == [nil, "\"1\""])
            #expect(bench.sent("Accept-Encoding") == [nil, "identity"])
            #expect(try await bench.range(nil) == .fresh(origin.bytes()))
            #expect(bench.cache.statistics.networkBytes == 100_000)
        }
    }

    @Test("It breaks repeatedly, and no byte is transferred twice", arguments: StoreKind.allCases)
    func brokenAgain(_ kind: StoreKind) async throws {
        let origin = RangeOrigin(length: 100_000) { $0.chunkSize = 1_000 }
        try await kind.withBench(origin) { bench in
            for _ in 0..<3 {
                origin.change { $0.breaksAfter = 30_000 }
                try await bench.readBroken()
            }
            #expect(try await bench.range(nil).body == origin.bytes())
            #expect(bench.sent("Range") == [nil, "bytes=30000-99999", "bytes=60000-99999", "bytes=90000-99999"])
        }
    }

    @Test(
        "The caller leaves after n bytes (Baseflow/flutter_cache_manager#247)",
        arguments: StoreKind.allCases,
        [true, false]
    )
    func left(_ kind: StoreKind, _ cancelsTask: Bool) async throws {
        let origin = RangeOrigin(length: 1_000_000) { $0.chunkSize = 50_000 }
        try await kind.withBench(origin) { bench in
            let response = try await bench.pipeline.send(.get())
            let reader = Task {
                var chunks = response.body.makeAsyncIterator()
                let first = try await chunks.next()
                if cancelsTask {
                    withUnsafeCurrentTask { $0?.cancel() }
                    _ = try? await chunks.next()
                }
                return first?.count
            }
            #expect(try await reader.value == 50_000)
            response.body.discard()
            await bench.pipeline.drain()
            let answer = try await bench.range(nil)
            #expect(answer.body == origin.bytes())
            let range = try #require(bench.sent("Range").last as? String)
            let start = try #require(RangeRequest(parsing: range)?.ranges.first?.bounds?.lowerBound)
            #expect(start >= 50_000 && start < 1_000_000)
            #expect(bench.sent("If-Range").last == "\"1\"")
            #expect(try await bench.range(nil).source == .fresh)
        }
    }

    @Test("The rest is also requested after a restart with a disk store")
    func restart() async throws {
        let origin = RangeOrigin(length: 500_000)
        try await DiskCacheTests.withDirectory { directory in
            for run in 0..<3 {
                let store = try await StoreKind.open(directory)
                let bench = CacheBench(origin.transport, store: store)
                if run == 0 {
                    origin.change { $0.breaksAfter = 300_001 }
                    try await bench.readBroken()
                } else {
                    #expect(try await bench.range(nil).body == origin.bytes())
                    #expect(bench.sent("Range") == (run == 1 ? ["bytes=300001-499999"] : []))
                }
                await store.close()
            }
        }
    }

    @Test("A partial body answers ranges within it, and content that changed meanwhile is fetched whole")
    func beginning() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        origin.change { $0.breaksAfter = 40 }
        try await bench.readBroken()
        #expect(try await bench.range("10-19") == .fresh(origin.bytes(10..<20), 206))
        origin.change { $0.version = 2 }
        #expect(try await bench.range(nil) == .network(origin.bytes()))
        #expect(bench.sent("Range").last == "bytes=40-99")
    }

    @Test("Without a strong validator nothing is kept", arguments: [true, false])
    func notKept(_ isWeak: Bool) async throws {
        let origin = RangeOrigin { $0.validator = isWeak ? .weak : .none }
        let bench = CacheBench(origin.transport)
        origin.change { $0.breaksAfter = 40 }
        try await bench.readBroken()
        #expect(bench.cache.store.statistics.entryCount == 0)
        #expect(try await bench.range(nil) == .network(origin.bytes()))
    }

    @Test("A truncated part is kept as far as it came, alone or combined", arguments: StoreKind.allCases)
    func brokenPart(_ kind: StoreKind) async throws {
        let origin = RangeOrigin { $0.chunkSize = 5 }
        try await kind.withBench(origin) { bench in
            origin.change { $0.breaksAfter = 15 }
            try await bench.readBroken(["Range": "bytes=20-59"])
            #expect(try await bench.range("20-34") == .fresh(origin.bytes(20..<35), 206))
            origin.change { $0.breaksAfter = 20 }
            try await bench.readBroken(["Range": "bytes=20-59"])
            #expect(bench.sent("Range") == ["bytes=20-59", "bytes=35-59"])
            #expect(try await bench.range("20-54") == .fresh(origin.bytes(20..<55), 206))
            #expect(try await bench.range(nil).body == origin.bytes())
        }
    }

    @Test("Over real sockets: the connection ends in the middle, and the rest is fetched")
    func sockets() async throws {
        let content = RangeOrigin.content(version: 1, length: 400_000)
        let server = try LoopbackServer.start { request in
            func field(_ name: String) -> String? { request.fields.first { $0.isNamed(name) }?.value }
            let fields = [
                ("ETag", "\"1\""), ("Cache-Control", "max-age=600"), ("Vary", "Accept-Encoding"),
            ]
            guard let range = field("Range"), field("If-Range") == "\"1\"",
                case .bounded(let first, let last)? = RangeRequest(parsing: range)?.ranges.first
            else {
                let start = RangeOrigin.slice(content, 0..<250_000)
                return LoopbackReply(fields: fields, framing: .length(400_000), steps: [.send(start), .close])
            }
            return LoopbackReply(
                206,
                fields: fields + [("Content-Range", "bytes \(first)-\(last)/400000")],
                body: RangeOrigin.slice(content, Int(first)..<Int(last) + 1)
            )
        }
        let cache = HTTPCache.inMemory()
        let pipeline = Pipeline(transport: URLSessionTransport(), cache: cache)
        let request = URLRequest(url: server.url("/film"))
        let broken = try await pipeline.send(request)
        await #expect(throws: ServiceError.self) { try await broken.body.collect() }
        await pipeline.drain()
        let whole = try await pipeline.send(request)
        #expect(whole.status == .ok)
        #expect(try await whole.body.data() == Data(content.utf8))
        #expect(whole.fields["Content-Length"] == "400000")
        let again = try await pipeline.send(request)
        #expect(again.source == .fresh)
        #expect(try await again.body.data() == Data(content.utf8))
        #expect(server.requests.count == 2)
        let asked = server.requests.last?.fields.first { $0.isNamed("Range") }?.value
        #expect(asked == "bytes=250000-399999")
        server.stop()
    }
}
