// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let listLaws = [
        Law("A list shows every entry once, on pages of any size, and counts as nothing") { run in
            try await run.with { store in
                var expected: Set<StoredEntry> = []
                for number in 0..<30 {
                    for variant in ["", "a", "ab", "b"].prefix(1 + number % 4) {
                        expected.insert(try await store.put("key\(number)", variant: variant, [1, 2, 3]))
                    }
                }
                let before = store.statistics
                var known: [StoredEntry: Int?]?
                for limit in [-1, 1, 3, 7, 1_000, .max] {
                    let listed = try await store.listed(limit: limit)
                    run.equal(listed.count, expected.count, "entries on pages of \(limit)")
                    run.check(Set(listed.map(\.entry)) == expected, "other entries than a look-up shows")
                    run.check(listed.allSatisfy { $0.bytes >= 3 }, "fewer bytes than the body has")
                    let hits = Dictionary(listed.map { ($0.entry, $0.hits) }, uniquingKeysWith: { first, _ in first })
                    run.check(known == nil || known == hits, "a list counts as hits")
                    known = hits
                    let page = try await store.list(after: nil, limit: limit, now: .at(0))
                    run.check(page.listed.count <= max(1, limit), "\(page.listed.count) entries on a page of \(limit)")
                }
                run.equal(store.statistics.lookups, before.lookups, "look-ups")
                run.equal(store.statistics.entryCount, before.entryCount, "entries held")
            }
        },
        Law("An entry that stays is listed once while others come and go") { run in
            try await run.with { store in
                for number in 0..<20 {
                    try await store.put("stays\(number)", [1])
                    try await store.put("goes\(number)", [1])
                }
                var seen: [StoreKey: Int] = [:]
                var cursor: StoreCursor?
                var pages = 0
                repeat {
                    let page = try await store.list(after: cursor, limit: 3, now: .at(0))
                    for listed in page.listed { seen[listed.entry.key, default: 0] += 1 }
                    cursor = page.next
                    pages += 1
                    try await store.invalidate(StoreKey("goes\(pages)"))
                    try await store.put("comes\(pages)", [2])
                    try await store.put("stays\(pages % 20)", [3])
                    for entry in try await store.get("stays\((pages + 10) % 20)") {
                        try await store.replaceDescription(of: entry, with: EntryDescription("new"), now: .at(0))
                    }
                } while cursor != nil && pages < 200
                run.check(cursor == nil, "the list has no end")
                for number in 0..<20 { run.equal(seen[StoreKey("stays\(number)")], 1, "stays\(number)") }
                run.check(seen.values.allSatisfy { $0 <= 1 }, "an entry is listed twice")
            }
        },
        Law("A list shows nothing that is being written, and a cursor of any bytes does no harm") { run in
            try await run.with { store in
                let writer = try await store.writer("k")
                run.check(try await store.listed(limit: 5).isEmpty, "an entry that is being written is listed")
                let entry = try await writer.commit(nil, now: .at(0))
                run.equal(try await store.listed(limit: 5).map(\.entry), [entry], "after the commit")
                for bytes in [[], [1], [UInt8](repeating: 255, count: 8), [UInt8](repeating: 255, count: 40)] {
                    let page = try? await store.list(after: StoreCursor(bytes), limit: .max, now: .at(0))
                    run.check((page?.listed.count ?? 0) <= 1, "more entries than there are")
                }
            }
        },
        Law("A list shows an entry's pin and what freshening changed") { run in
            try await run.with { store in
                let entry = try await store.put("a", [1])
                _ = try await store.setPinned(true, entry)
                let new = try await store.replaceDescription(of: entry, with: EntryDescription("new"), now: .at(1))
                run.equal(new?.isPinned, true, "the pin after freshening")
                run.equal(try await store.listed(limit: 5).map(\.entry), new.map { [$0] } ?? [], "the list")
            }
        },
    ]
}
