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

@Suite("Listing the entries of a cache", .timeLimit(.minutes(20)))
struct ListingTests {
    private static let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"v\""]

    /// A cache that holds /0 to /6, the bodies as long as their numbers.
    private static func filled(_ store: any CacheStore) async throws -> CacheBench {
        let transport = ScriptedTransport { request in
            let number = request.url.flatMap { Int($0.lastPathComponent) } ?? 0
            return .respond(200, fields, body: String(repeating: "b", count: number))
        }
        let bench = CacheBench(transport, store: store)
        for number in 0..<7 {
            var options = CallOptions()
            options.tags = number % 2 == 0 ? ["even"] : []
            try await bench.load(.get("http://origin.example/\(number)"), options)
        }
        return bench
    }

    private static func all(_ entries: CacheEntries) async throws -> [CacheEntryInfo] {
        var all: [CacheEntryInfo] = []
        for try await info in entries { all.append(info) }
        return all
    }

    private static func paths(_ entries: CacheEntries) async throws -> [String] {
        try await all(entries).map { $0.target.path }.sorted()
    }

    @Test("Every response is listed once, whatever the page size", arguments: EachStore.allCases, [-1, 1, 2, 7, 256])
    func pages(kind: EachStore, pageSize: Int) async throws {
        try await kind.with { store in
            let bench = try await Self.filled(store)
            let before = store.statistics
            let entries = bench.cache.entries(pageSize: pageSize, now: bench.time)
            #expect(try await Self.paths(entries) == (0..<7).map { "/\($0)" })
            // A second iteration begins anew.
            #expect(try await Self.all(entries).count == 7)
            #expect(store.statistics.lookups == before.lookups)
        }
    }

    @Test("An empty cache lists nothing", arguments: EachStore.allCases)
    func empty(kind: EachStore) async throws {
        try await kind.with { store in
            let listed = try await Self.all(HTTPCache(store: store).entries())
            #expect(listed.isEmpty)
        }
    }

    @Test("An entry says where it is from, how large it is and how fresh", arguments: EachStore.allCases)
    func told(kind: EachStore) async throws {
        try await kind.with { store in
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "Vary": "Accept-Language, X-Absent, Cookie", "Age": "10",
            ]
            let bench = CacheBench(
                ScriptedTransport([.respond(203, fields, body: "12345")]),
                store: store,
                mode: .shared
            )
            var options = CallOptions()
            options.tags = ["a", "b"]
            let stored = bench.time
            try await bench.load(
                .get("http://origin.example/x?y=1", ["Accept-Language": "de", "Cookie": "s=secret"]),
                options
            )
            bench.clock.advance(by: .seconds(80))
            let info = try #require(try await Self.all(bench.cache.entries(now: bench.time)).first)
            #expect(info.target.description == "http://origin.example/x?y=1")
            #expect(info.method == .get)
            #expect(info.status == 203)
            #expect(info.tags == ["a", "b"])
            #expect(info.storedAt == stored)
            #expect(info.bodyLength == 5)
            #expect(info.headLength > 60)
            #expect(try #require(info.storedBytes) > info.bodyLength + info.headLength)
            #expect(info.age == 90)
            #expect(info.freshnessLeft == -30)
            #expect(!info.isFresh)
            #expect(!info.isPinned)
            #expect(info.storedRanges == nil)
            #expect(
                info.nominated.map(\.description) == ["accept-language: de", "cookie: (hidden)", "x-absent: (absent)"]
            )
        }
    }

    @Test("A selection of any form lists what it would remove", arguments: EachStore.allCases)
    func selections(kind: EachStore) async throws {
        try await kind.with { store in
            let bench = try await Self.filled(store)
            let cache = bench.cache
            let three = try #require(URL(string: "http://origin.example/3"))
            let origin = try #require(URL(string: "http://origin.example"))
            func paths(_ selection: CacheSelection) async throws -> [String] {
                try await Self.paths(cache.entries(selection, pageSize: 2, now: bench.time))
            }
            #expect(try await paths(.url(three)) == ["/3"])
            #expect(try await paths(.path(origin)).count == 7)
            #expect(try await paths(.tag("even")) == ["/0", "/2", "/4", "/6"])
            #expect(try await paths(.principal("nobody")).isEmpty)
            #expect(try await paths(.matching { $0.bodyLength > 4 && $0.storedBytes != nil }) == ["/5", "/6"])
            #expect(try await paths(.olderThan(.seconds(1))).isEmpty)
            bench.clock.advance(by: .seconds(2))
            #expect(try await paths(.olderThan(.seconds(1))).count == 7)
        }
    }

    @Test("A selection by age lists what it would remove, also if the cache fixes lifetimes and so ignores Age")
    func fixedLifetimes() async throws {
        let transport = ScriptedTransport([.respond(200, ["Age": "100"], body: "1")])
        let bench = CacheBench(transport, options: { $0.fixedLifetime = .seconds(60) })
        try await bench.load()
        let selection = CacheSelection.olderThan(.seconds(50))
        #expect(try await Self.all(bench.cache.entries(selection, now: bench.time)).count == 1)
        #expect(try await bench.cache.remove(selection, now: bench.time) == 1)
    }

    @Test("An entry that needs validation says so, after a soft purge or if the store cannot vouch for it")
    func confirmation() async throws {
        let bench = try await Self.filled(MemoryStore(capacity: 1 << 20))
        try await bench.cache.markStale(.tag("even"), now: bench.time)
        let unsure = try await Self.all(bench.cache.entries(.matching { $0.needsConfirmation }, now: bench.time))
        #expect(unsure.count == 4)
        #expect(unsure.allSatisfy { !$0.isFresh && $0.freshnessLeft == 60 })
        let page = try await bench.cache.store.list(after: nil, limit: 9, now: .init(bench.time))
        let listed = try #require(page.listed.first { $0.entry.bodyLength == 1 }?.entry)
        let stored = try #require(StoredResponse(decoding: listed.description.metadata))
        let doubted = StoredEntry(
            key: listed.key,
            variant: listed.variant,
            version: listed.version,
            description: listed.description,
            bodyLength: listed.bodyLength,
            storedAt: listed.storedAt,
            needsValidation: true
        )
        #expect(
            !CacheEntryInfo(listed, stored: stored, options: bench.cache.options, now: bench.time).needsConfirmation
        )
        #expect(
            CacheEntryInfo(doubted, stored: stored, options: bench.cache.options, now: bench.time).needsConfirmation
        )
    }

    @Test("Keys that are not responses of this cache are left out: foreign entries, and those of No-Vary-Search")
    func foreign() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let writer = try await store.write(
            StoreKey(Array("another program's".utf8)),
            variant: StoreKey([]),
            description: EntryDescription(metadata: ByteChunk([1, 2, 3])),
            expectedLength: nil,
            now: StoreInstant(milliseconds: 0)
        )
        try await writer.commit(nil, now: StoreInstant(milliseconds: 0))
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "No-Vary-Search": "params=(\"a\")"]
        let bench = CacheBench([.respond(200, fields, body: "x")], store: store)
        try await bench.load(.get("http://origin.example/a?a=1"))
        #expect(store.statistics.entryCount > 2)
        #expect(try await Self.paths(bench.cache.entries(pageSize: 1, now: bench.time)) == ["/a"])
    }

    @Test(
        "Entries that are removed during a listing do not end it, and those that stay are listed",
        arguments: EachStore.allCases
    )
    func removedMeanwhile(kind: EachStore) async throws {
        try await kind.with { store in
            let bench = try await Self.filled(store)
            var seen: Set<String> = []
            for try await info in bench.cache.entries(pageSize: 1, now: bench.time) {
                #expect(seen.insert(info.target.path).inserted)
                if seen.count == 1 { try await bench.cache.remove(.tag("even"), now: bench.time) }
            }
            #expect(seen.isSuperset(of: ["/1", "/3", "/5"]))
        }
    }

    @Test("A cancelled task's listing ends with an error, between two pages at the latest")
    func cancelled() async throws {
        let bench = try await Self.filled(MemoryStore(capacity: 1 << 20))
        let entries = bench.cache.entries(pageSize: 1, now: bench.time)
        let task = Task { () -> (Int, StoreError.Code?) in
            var count = 0
            do throws(StoreError) {
                for try await _ in entries {
                    count += 1
                    if count == 2 { withUnsafeCurrentTask { $0?.cancel() } }
                }
                return (count, nil)
            } catch {
                return (count, error.code)
            }
        }
        let (count, code) = await task.value
        #expect(count == 2)
        #expect(code == .cancelled)
    }

    @Test("A store failure ends the listing with its error, once")
    func failing() async throws {
        let store = FaultyStore()
        let bench = CacheBench([.respond(200, Self.fields, body: "x")], store: store)
        try await bench.load()
        store.fault.withLock { $0 = .purge }
        var iterator = bench.cache.entries(now: bench.time).makeAsyncIterator()
        do throws(StoreError) {
            _ = try await iterator.next()
            Issue.record("The listing went on.")
        } catch {
            #expect(error.code == .io)
        }
        #expect(try await iterator.next() == nil)
    }
}
