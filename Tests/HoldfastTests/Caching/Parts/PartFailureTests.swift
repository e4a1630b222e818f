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

@Suite("Parts, and stores that fail, lose or damage entries", .timeLimit(.minutes(20)))
struct PartFailureTests {
    @Test("A store that fails at any step costs no caller any bytes", arguments: FaultyStore.Fault.allCases)
    func faults(_ fault: FaultyStore.Fault) async throws {
        for load in ["10-19", "5-30", nil] {
            let origin = RangeOrigin { $0.chunkSize = 4 }
            let store = FaultyStore()
            let bench = CacheBench(origin.transport, store: store)
            try await bench.range("0-9")
            try await bench.range("20-29")
            store.fault.withLock { $0 = fault }
            let interval = load.flatMap { RangeRequest(parsing: "bytes=" + $0)?.ranges.first?.bounds }
            let range = interval.map { Int($0.lowerBound)..<Int($0.upperBound) }
            for _ in 0..<2 { #expect(try await bench.range(load).body == origin.bytes(range)) }
            store.fault.withLock { $0 = nil }
            #expect(try await bench.range(load).body == origin.bytes(range))
            #expect(try await bench.range(nil).body == origin.bytes())
        }
    }

    @Test("An empty chunk does not end the part that completes a response", arguments: [10, 50, 100])
    func emptyChunk(_ place: Int) async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 10-99/100",
            "Date": "Tue, 14 Nov 2023 22:13:20 GMT",
        ]
        let chunks = [origin.bytes(10..<place), "", origin.bytes(place..<100)]
        origin.change { $0.instead = .stream(206, fields, chunks: chunks) }
        #expect(try await bench.range(nil) == .network(origin.bytes()))
        #expect(try await bench.range(nil) == .fresh(origin.bytes()))
        #expect(bench.sends == 2)
    }

    @Test("If an entry is purged between lookup and combining, the response is complete and nothing old is stored")
    func purged() async throws {
        let origin = RangeOrigin()
        let cache = Mutex<HTTPCache?>(nil)
        let transport = ScriptedTransport { request in
            if let cache = cache.withLock({ $0 }), request.value(forHTTPHeaderField: "If-Range") != nil {
                _ = try await cache.store.purge(.matching { _ in true }, now: StoreInstant(milliseconds: 0))
            }
            return origin.answer(request)
        }
        let bench = CacheBench(transport)
        cache.withLock { $0 = bench.cache }
        try await bench.range("0-9")
        #expect(try await bench.range(nil).body == origin.bytes())
        #expect(try await bench.range(nil).body == origin.bytes())
    }

    @Test(
        "If an entry is replaced between lookup and combining, each response has one version",
        arguments: StoreKind.allCases
    )
    func replaced(_ kind: StoreKind) async throws {
        let origin = RangeOrigin()
        let gate = CountWatch()
        let transport = ScriptedTransport { request in
            let step = origin.answer(request)
            if request.value(forHTTPHeaderField: "If-Range") != nil { try await gate.wait(for: 1) }
            return step
        }
        try await kind.withStore { store in
            let bench = CacheBench(transport, store: store)
            try await bench.range("0-9")
            let old = origin.bytes()
            let completing = Task { try await bench.range(nil).body }
            try await transport.waitForSends(2)
            origin.change { $0.version = 2 }
            let new = try await bench.load(.get(), .reloading)
            #expect(new.body == origin.bytes())
            gate.increment()
            #expect(try await completing.value == old)
            let last = try await bench.range(nil).body
            #expect(last == old || last == origin.bytes())
        }
    }

    @Test("An entry whose body does not match its ranges is damaged: it is removed, and none of it is served")
    func wrongLength() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-19")
        let store = bench.cache.store
        let now = StoreInstant(milliseconds: 1_700_000_000_000)
        let kept = Mutex<StoredEntry?>(nil)
        _ = try await store.purge(
            .matching { entry in
                kept.withLock { $0 = entry }
                return false
            },
            now: now
        )
        let entry = try #require(kept.withLock { $0 })
        let writer = try await store.write(
            entry.key,
            variant: entry.variant,
            description: entry.description,
            expectedLength: nil,
            now: now
        )
        try await writer.append(ByteChunk(copying: "short".utf8))
        _ = try await writer.commit(nil, now: now)
        #expect(try await bench.range("0-9") == .network(origin.bytes(0..<10), 206))
        #expect(bench.cache.statistics.storeFailures > 0)
        #expect(try await bench.range(nil).body == origin.bytes())
    }

    @Test(
        "An unreadable stored part counts as a store failure and does not fail the caller of another part",
        arguments: [("0-599999", 700_000..<800_000), ("400000-999999", 0..<100_000)]
    )
    func damagedBase(_ base: String, _ wanted: Range<Int>) async throws {
        try await DiskCacheTests.withDirectory { directory in
            let store = try await StoreKind.open(directory)
            let origin = RangeOrigin(length: 1_000_000)
            let bench = CacheBench(origin.transport, store: store)
            try await bench.range(base)
            try Self.damageBody(in: directory)
            let answer = try await bench.range("\(wanted.lowerBound)-\(wanted.upperBound - 1)")
            #expect(answer == .network(origin.bytes(wanted), 206))
            #expect(bench.cache.statistics.storeFailures == 1)
            #expect(try await bench.range(nil).body == origin.bytes())
            #expect(try await bench.range(nil).source == .fresh)
            await store.close()
        }
    }

    static func damageBody(in directory: URL) throws {
        let bodies = directory.appending(path: "blobs")
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: bodies.path).first)
        let file = try FileHandle(forUpdating: bodies.appending(path: name))
        try file.seek(toOffset: 400_000)
        try file.write(contentsOf: Data([0]))
        try file.close()
    }

    @Test("A part that is cut short replaces no more than it brings")
    func keepsMore() async throws {
        let origin = RangeOrigin { $0.chunkSize = 5 }
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        try await bench.range("20-29")
        origin.change { $0.breaksAfter = 5 }
        try await bench.readBroken(["Range": "bytes=0-29"])
        #expect(bench.events.events(.responseNotStored).map(\.notStoredReason) == [.incomplete])
        #expect(try await bench.range("20-29") == .fresh(origin.bytes(20..<30), 206))
        #expect(try await bench.range("0-29").body == origin.bytes(0..<30))
    }

    @Test("A typed call checks what the caller gets, never the part that the cache requested")
    func acceptance() async throws {
        let origin = RangeOrigin()
        let bench = CacheBench(origin.transport)
        try await bench.range("0-9")
        var options = CallOptions()
        var acceptance = Acceptance { response in
            let bytes = try await response.body.collect()
            guard bytes.count == 100 else { throw Refused(reason: "\(bytes.count) bytes") }
            response.body = ResponseBody(bytes)
        }
        acceptance.checksAttempts = true
        options.acceptance = acceptance
        #expect(try await bench.load(.get(), options).body == origin.bytes())
        #expect(bench.sent("Range") == ["bytes=0-9", "bytes=10-99"])
    }
}
