// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("Listing the entries of a store, page by page")
struct ListingTests {
    /// All entries a list shows, with `between` run after each page.
    private func all(
        of store: any CacheStore,
        limit: Int,
        between: (Int) async throws -> Void = { _ in }
    ) async throws -> [ListedEntry] {
        var listed: [ListedEntry] = []
        var cursor: StoreCursor?
        var pages = 0
        repeat {
            let page = try await store.list(after: cursor, limit: limit, now: .at(0))
            #expect(page.listed.count <= max(1, limit))
            listed += page.listed
            cursor = page.next
            pages += 1
            try await between(pages)
        } while cursor != nil && pages < 1_000
        return listed
    }

    @Test("Every entry once, on pages of any size", arguments: StoreMaker.all, [-1, 1, 3, 7, 1_000])
    func pages(maker: StoreMaker, limit: Int) async throws {
        try await maker.with { fixture in
            var expected: Set<StoredEntry> = []
            for number in 0..<30 {
                for variant in ["", "a", "ab", "b"].prefix(1 + number % 4) {
                    expected.insert(try await fixture.store.put("key\(number)", variant: variant, [1, 2, 3]))
                }
            }
            let before = fixture.store.statistics
            let listed = try await all(of: fixture.store, limit: limit)
            #expect(listed.count == expected.count)
            #expect(Set(listed.map(\.entry)) == expected)
            #expect(listed.allSatisfy { $0.bytes >= 3 && ($0.hits ?? 0) == 0 })
            #expect(fixture.store.statistics == before, "a list is no look-up")
        }
    }

    @Test("An entry that stays is listed once while others come and go", arguments: StoreMaker.all)
    func changes(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let store = fixture.store
            for number in 0..<20 { try await store.put("stays\(number)", [1]) }
            for number in 0..<20 { try await store.put("goes\(number)", [1]) }
            let listed = try await all(of: store, limit: 3) { page in
                try await store.invalidate(StoreKey("goes\(page)"))
                try await store.put("comes\(page)", [2])
                // Replaced and freshened entries stay where they are in the list.
                try await store.put("stays\(page)", [3])
                for entry in try await store.get("stays\((page + 10) % 20)") {
                    try await store.replaceDescription(of: entry, with: EntryDescription("new"), now: .at(0))
                }
            }
            for number in 0..<20 {
                #expect(listed.count { $0.entry.key == StoreKey("stays\(number)") } == 1)
            }
        }
    }

    @Test("An entry that is being written is not listed, and goes on", arguments: StoreMaker.all)
    func writing(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            let writer = try await fixture.store.write(
                StoreKey("k"),
                variant: StoreKey(""),
                description: EntryDescription("m"),
                expectedLength: nil,
                now: .at(0)
            )
            #expect(try await all(of: fixture.store, limit: 5).isEmpty)
            try await writer.commit(nil, now: .at(0))
            #expect(try await all(of: fixture.store, limit: 5).count == 1)
        }
    }

    @Test("No cursor traps", arguments: StoreMaker.all)
    func cursors(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            for number in 0..<5 { try await fixture.store.put("key\(number)", [1]) }
            for bytes in [[], [1], [UInt8](repeating: 255, count: 8), [UInt8](repeating: 255, count: 40)] {
                let page = try await fixture.store.list(after: StoreCursor(bytes), limit: .max, now: .at(0))
                #expect(page.listed.count <= 5)
            }
        }
    }

    @Test("A closed store lists nothing", arguments: StoreMaker.all)
    func closed(maker: StoreMaker) async throws {
        try await maker.with { fixture in
            await fixture.store.close()
            let code = await errorCode { _ = try await fixture.store.list(after: nil, limit: 5, now: .at(0)) }
            #expect(code == .closed)
        }
    }
}
