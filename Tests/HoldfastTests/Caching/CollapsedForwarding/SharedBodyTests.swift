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

// lysine-dev/okhttp#2504, #7501, requests-cache/requests-cache#878, karpetrosyan/hishel#89: large or half-read bodies.
@Suite("One body for several readers", .timeLimit(.minutes(20)))
struct SharedBodyTests {
    static let size = 256 << 10
    static let chunks = (0..<8).map { number in ByteChunk([UInt8](repeating: UInt8(number), count: size)) }
    static let whole = chunks.reduce(into: Data()) { data, chunk in
        chunk.withUnsafeBytes { data.append(contentsOf: $0) }
    }

    static func bench(
        _ source: GatedSource,
        _ fields: HeaderFields = cacheable,
        length: Int? = 8 * size,
        store: any CacheStore = MemoryStore(capacity: 16 << 20),
        options: CacheOptions = CacheOptions()
    ) -> FetchBench {
        let bench = FetchBench(
            GatedOrigin { _, number in
                number == 1
                    ? .stream(200, fields, source, length)
                    : .answer(200, fields, "again")
            },
            store: store,
            options: options
        )
        bench.origin.open(9)
        return bench
    }

    static func read(_ response: Response, _ count: Int) async throws -> [ByteChunk] {
        var chunks: [ByteChunk] = []
        for _ in 0..<count {
            guard let chunk = try await response.body.source?.next() else { break }
            chunks.append(chunk)
        }
        return chunks
    }

    @Test(
        "okhttp#2504: late readers get the body from its start, even beyond the window, while others are ahead",
        arguments: [true, false]
    )
    func lateReaders(_ onDisk: Bool) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let store: any CacheStore =
            onDisk
            ? try await DiskStore.open(
                directory: directory.path,
                capacity: 64 << 20,
                now: StoreInstant(milliseconds: 0)
            )
            : MemoryStore(capacity: 16 << 20)
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source, store: store)
        let first = try await bench.pipeline.send(.get())
        source.open(7)
        #expect(try await Self.read(first, 7).count == 7)
        let late = try await bench.pipeline.send(.get())
        #expect(late.source == .collapsed)
        let slow = try await bench.pipeline.send(.get())
        #expect(try await Self.read(slow, 1).first?.array.first == 0)
        source.open(2)
        #expect(try await late.body.data() == Self.whole)
        #expect(try await first.body.data() == Self.whole.suffix(Self.size))
        #expect(try await slow.body.collect().array.last == 7)
        await bench.waitForQuiet()
        #expect(bench.sends == 1)
        #expect(try await bench.pipeline.send(.get()).source == .fresh)
        await store.close()
    }

    @Test("Of two tasks that read one body at the same time the second gets an error, and the first gets the body")
    func twoTasks() async throws {
        let source = GatedSource([ByteChunk("a")])
        let bench = Self.bench(source, length: 1)
        let response = try await bench.pipeline.send(.get())
        let body = try #require(response.body.source)
        let first = Task { try await body.next() }
        try await source.pulled.wait(for: 1)
        await #expect(throws: ServiceError.self) { try await body.next() }
        source.open(2)
        #expect(try await first.value == ByteChunk("a"))
        #expect(try await body.next() == nil)
    }

    @Test("A reader that neither reads nor leaves blocks nobody while the body is stored")
    func idleReader() async throws {
        let source = GatedSource(Self.chunks)
        source.open(9)
        let bench = Self.bench(source)
        let idle = try await bench.pipeline.send(.get())
        let busy = try await bench.pipeline.send(.get())
        #expect(try await busy.body.data() == Self.whole)
        #expect(bench.cache.store.statistics.entryCount == 1)
        #expect(try await idle.body.data() == Self.whole)
    }

    @Test("If nothing is stored, a reader that stands still is given up after 30 s; new readers and others are not")
    func stalledReader() async throws {
        let store = FaultyStore()
        store.fault.withLock { $0 = .append }
        let source = GatedSource(Self.chunks)
        source.open(9)
        let bench = Self.bench(source, length: nil, store: store)
        let stalled = try await bench.pipeline.send(.get())
        let busy = try await bench.pipeline.send(.get())
        #expect(try await Self.read(busy, 4).count == 4)
        let rest = Task { try await busy.body.collect() }
        try await bench.clock.waitForSleeps(1)
        bench.clock.advance(by: .seconds(29))
        let newcomer = try await bench.pipeline.send(.get())
        #expect(newcomer.source == .collapsed)
        await until { bench.clock.sleeperCount == 1 }
        bench.clock.advance(by: .seconds(1))
        #expect(try await newcomer.body.data() == Self.whole)
        #expect(try await rest.value.count == 4 * Self.size)
        await #expect(throws: ServiceError.self) { try await stalled.body.collect() }
        #expect(bench.cache.statistics.storeFailures == 1)
    }

    @Test("A failure's body is shared too, at the pace of its readers")
    func sharedFailure() async throws {
        let source = GatedSource(Self.chunks)
        source.open(9)
        let origin = GatedOrigin { _, _ in .stream(503, [:], source, nil) }
        let bench = FetchBench(origin)
        let calls = (0..<5).map { _ in Task { try await bench.pipeline.send(.get()).body.data() } }
        await bench.waitForReaders(5)
        origin.open()
        for call in calls { #expect(try await call.value == Self.whole) }
    }

    @Test("A reader that is cancelled while it waits leaves the bytes to the others")
    func cancelledReader() async throws {
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source)
        let first = try await bench.pipeline.send(.get())
        let second = try await bench.pipeline.send(.get())
        let reading = Task { try await first.body.collect() }
        try await source.pulled.wait(for: 1)
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
        first.body.discard()
        source.open(9)
        #expect(try await second.body.data() == Self.whole)
    }

    @Test("discard() from another task ends a waiting read with a cancellation")
    func discarded() async throws {
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source)
        let first = try await bench.pipeline.send(.get())
        let second = try await bench.pipeline.send(.get())
        let reading = Task { try await first.body.collect() }
        try await source.pulled.wait(for: 1)
        await until { bench.cache.fetches.readers == 2 }
        first.body.discard()
        await #expect(throws: CancellationError.self) { try await reading.value }
        second.body.discard()
    }

    @Test(
        "okhttp#7501: when the last reader leaves, the transfer ends, unless the store may have the rest",
        arguments: [(0, 1, false), (5 * size, 1, false), (8 * size, 1, true), (size, 7, true), (0, 8, true)]
    )
    func lastLeaves(_ allowance: Int, _ read: Int, _ isStored: Bool) async throws {
        var options = CacheOptions()
        options.abandonedBodyAllowance = allowance
        let ended = CountWatch()
        let source = GatedSource(Self.chunks, ended: ended)
        let bench = Self.bench(source, options: options)
        func readSome() async throws {
            let first = try await bench.pipeline.send(.get())
            let second = try await bench.pipeline.send(.get())
            source.open(read)
            _ = try await Self.read(first, read)
            _ = second
        }
        try await readSome()
        if isStored {
            source.open(9)
        } else {
            try await ended.wait(for: 1)
        }
        await bench.waitForQuiet()
        #expect(bench.cache.store.statistics.entryCount == (isStored ? 1 : 0))
        #expect((bench.cache.store.statistics.bytesUsed > 0) == isStored)
    }

    @Test("The rest that is fetched for the store alone is given up after five seconds, and nobody joins it")
    func silentRest() async throws {
        var options = CacheOptions()
        options.abandonedBodyAllowance = Self.size
        let ended = CountWatch()
        let source = GatedSource(Self.chunks, ended: ended)
        let bench = Self.bench(source, options: options)
        func readSome() async throws {
            let first = try await bench.pipeline.send(.get())
            source.open(7)
            _ = try await Self.read(first, 7)
        }
        try await readSome()
        // The origin is silent now.
        #expect(try await bench.load() == .network("again"))
        try await bench.clock.waitForSleeps(1)
        bench.clock.advance(by: .milliseconds(4_999))
        #expect(ended.count == 0)
        bench.clock.advance(by: .milliseconds(1))
        try await ended.wait(for: 1)
        await bench.waitForQuiet()
        #expect(try await bench.load().body == "again")
    }

    @Test("A reader that has every byte may leave before the end is known: later calls still join")
    func everyByte() async throws {
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source)
        func readAll() async throws {
            let first = try await bench.pipeline.send(.get())
            source.open(8)
            _ = try await Self.read(first, 8)
        }
        try await readAll()
        let late = try await bench.pipeline.send(.get())
        #expect(late.source == .collapsed)
        bench.clock.advance(by: .seconds(6))
        source.open(1)
        #expect(try await late.body.data() == Self.whole)
        await bench.waitForQuiet()
        #expect(bench.sends == 1)
    }

    @Test("A body that is fetched for the store alone is abandoned when the store fails")
    func storeFailsWithoutReaders() async throws {
        var options = CacheOptions()
        options.abandonedBodyAllowance = 1 << 30
        let store = FaultyStore()
        let ended = CountWatch()
        let source = GatedSource((0..<8).map { ByteChunk([$0]) }, ended: ended)
        let bench = Self.bench(source, length: 8, store: store, options: options)
        func readSome() async throws {
            let response = try await bench.pipeline.send(.get())
            source.open(1)
            _ = try await Self.read(response, 1)
        }
        try await readSome()
        store.fault.withLock { $0 = .append }
        source.open(1)
        try await ended.wait(for: 1)
        await bench.waitForQuiet()
        #expect(source.pulled.count < 8)
    }

    @Test("A response that is not reusable is not shared with callers after its head", arguments: [0, 70])
    func lateUnusable(_ later: Int) async throws {
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source, ["Cache-Control": later == 0 ? "no-cache" : "max-age=60"])
        let first = try await bench.pipeline.send(.get())
        bench.clock.advance(by: .seconds(later))
        #expect(try await bench.load() == .network("again"))
        first.body.discard()
    }

    @Test("A broken body fails for all, after the bytes that arrived")
    func broken() async throws {
        let source = GatedSource(
            [ByteChunk([1])],
            failure: ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
        )
        source.open(2)
        let bench = Self.bench(source)
        for _ in 0..<1 {
            let readers = [try await bench.pipeline.send(.get()), try await bench.pipeline.send(.get())]
            for reader in readers {
                #expect(try await Self.read(reader, 1) == [ByteChunk([1])])
                await #expect(throws: ServiceError.self) { try await Self.read(reader, 1) }
            }
        }
        await bench.waitForQuiet()
        #expect(bench.cache.store.statistics.entryCount == 0)
    }

    @Test(
        "Nothing keeps a body in memory that was dropped unread, or read",
        arguments: ["max-age=60", "no-store"],
        [true, false]
    )
    func letGo(_ cacheControl: String, _ isRead: Bool) async throws {
        let ended = CountWatch()
        let bench = FetchBench(
            GatedOrigin { _, _ in
                let source = GatedSource([ByteChunk([1])], ended: ended)
                source.open(2)
                return .stream(200, ["Cache-Control": cacheControl], source, nil)
            }
        ) { $0.observers = [EventRecorder()] }
        bench.origin.open()
        func call() async throws {
            let response = try await bench.pipeline.send(.get())
            if isRead { _ = try await response.body.collect() }
        }
        try await call()
        try await ended.wait(for: 1)
        await bench.waitForQuiet()
    }

    @Test("A reader that is behind gets the whole body, although the first caller has refused the response")
    func refusedWhileBehind() async throws {
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source)
        var options = CallOptions()
        options.acceptance = Acceptance { response in
            _ = try await response.body.collect()
            throw Refused(reason: "scripted")
        }
        let first = Task { [options] in try await bench.pipeline.send(.get(), options: options) }
        try await source.pulled.wait(for: 1)
        let slow = try await bench.pipeline.send(.get())
        #expect(slow.source == .collapsed)
        source.open(9)
        await #expect(throws: Refused.self) { try await first.value }
        #expect(try await slow.body.data() == Self.whole)
    }

    @Test("RFC 9111 §4: a call that joins a response which arrived before it is told its age")
    func lateAge() async throws {
        let source = GatedSource(Self.chunks)
        let bench = Self.bench(source)
        let first = try await bench.pipeline.send(.get())
        bench.clock.advance(by: .seconds(50))
        let late = try await bench.pipeline.send(.get())
        #expect(late.source == .collapsed)
        #expect(late.fields.values(of: .age) == ["50"])
        first.body.discard()
        late.body.discard()
    }
}
