// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let entryLaws = [
        Law("A committed entry is found with its description and its body") { run in
            try await run.with { store in
                run.check(try await store.get("a").isEmpty, "an empty store has an entry")
                let description = EntryDescription("head", uselessAfter: .at(99), tags: ["t", "u"])
                let put = try await store.put("a", variant: "v", Array("hello".utf8), description, now: .at(7))
                run.equal(try await store.get("a"), [put], "the lookup")
                run.equal(put.key, StoreKey("a"), "key")
                run.equal(put.variant, StoreKey("v"), "variant")
                run.equal(put.description, description, "description")
                run.equal(put.bodyLength, 5, "body length")
                run.equal(put.storedAt, .at(7), "stored at")
                run.check(!put.isPinned && !put.needsValidation, "pinned or in need of validation from the start")
                run.equal(try await store.wholeBody(of: put), Array("hello".utf8), "body")
                run.check(try await store.get("b").isEmpty, "another key has an entry")
                run.check(store.secret.count >= 16, "the secret is shorter than 16 bytes")
            }
        },
        Law("A lookup that does not suspend returns what the other one returns, or nothing") { run in
            try await run.with { store in
                let put = try await store.put("a", [1])
                for _ in 0..<3 {
                    let (a, b) = (store.peek(StoreKey("a"), now: .at(0)), store.peek(StoreKey("b"), now: .at(0)))
                    run.check(a == nil || a == [put], "it returns \(a ?? []) instead of \(put)")
                    run.check(b?.isEmpty ?? true, "it returns an entry that is not there")
                    _ = try await store.wholeBody(of: put)
                }
                try await store.remove(put)
                run.check(store.peek(StoreKey("a"), now: .at(0))?.isEmpty ?? true, "it shows what was removed")
            }
        },
        Law("Keys and variants of any bytes are distinguished") { run in
            try await run.with { store in
                let long = String(repeating: "k", count: 2_000)
                let keys = ["", "a", "ab", "a\0", "\u{ff}", long, long + "a"]
                var expected: [String: [StoredEntry]] = [:]
                for key in keys {
                    for variant in ["", "a", "b\0", long] {
                        let body = Array("\(key.utf8.count)|\(variant)".utf8)
                        expected[key, default: []].insert(try await store.put(key, variant: variant, body), at: 0)
                    }
                }
                for key in keys {
                    run.equal(try await store.get(key), expected[key] ?? [], "key of \(key.utf8.count) bytes")
                    for entry in expected[key] ?? [] {
                        let variant = String(decoding: entry.variant.bytes, as: UTF8.self)
                        let body = Array("\(key.utf8.count)|\(variant)".utf8)
                        run.equal(try await store.wholeBody(of: entry), body, "body of \(variant.utf8.count)")
                    }
                }
            }
        },
        Law("Bodies of every length come back byte for byte, from any position in any pieces") { run in
            let lengths = [0, 1, 4_095, 16_384, 65_535, 65_536, 65_537, 131_073, 200_001, (3 << 20) + 7]
            try await run.with(capacity: 64 << 20) { store in
                var generator = SeededGenerator(seed: run.seed)
                for length in lengths {
                    let bytes = generator.bytes(length)
                    let expected = Bool.random(using: &generator) ? length : nil
                    let writer = try await store.writer("k\(length)", expecting: expected)
                    var start = 0
                    while start < length {
                        let count = min(length - start, Int.random(in: 1...90_000, using: &generator))
                        try await writer.append(ByteChunk(bytes)[start..<(start + count)])
                        start += count
                    }
                    let entry = try await writer.commit(nil, now: .at(0))
                    run.equal(entry.bodyLength, length, "length")
                    // Twice, since a store may answer from another place the second time.
                    for _ in 0..<2 {
                        let body = try await store.body(of: entry)
                        run.equal(body.length, length, "length of the open body")
                        run.equal(
                            try await body.whole(piece: 1_001 + length / 20),
                            bytes,
                            "\(length) bytes in small pieces"
                        )
                        run.equal(try await body.whole(piece: .max), bytes, "\(length) bytes at once")
                        run.check(try await body.read(from: length + 5, upTo: 10).isEmpty, "bytes past the end")
                        run.check(try await body.read(from: .max, upTo: .max).isEmpty, "bytes far past the end")
                        run.check(try await body.read(from: 0, upTo: 0).isEmpty, "bytes that nobody requested")
                        for _ in 0..<8 where length > 0 {
                            let offset = Int.random(in: 0..<length, using: &generator)
                            let count = Int.random(in: 1...70_000, using: &generator)
                            let piece = try await body.read(from: offset, upTo: count).array
                            let rest = bytes[offset...].prefix(count)
                            run.check(!piece.isEmpty, "no bytes at \(offset) of \(length)")
                            run.check(piece.count <= rest.count && rest.starts(with: piece), "wrong bytes at \(offset)")
                        }
                        if let whole = body.bytesInMemory { run.equal(whole.array, bytes, "bytes in memory") }
                    }
                }
            }
        },
        Law("A body that is returned without suspending belongs to its version, and never to one that is gone") { run in
            var generator = SeededGenerator(seed: run.seed)
            try await run.with { store in
                for length in [0, 1, 70_000, 300_000] {
                    let bytes = generator.bytes(length)
                    let entry = try await store.put("k\(length)", bytes)
                    // More than once, since a store may have moved the body by then.
                    for _ in 0..<3 {
                        run.equal(try await store.get("k\(length)"), [entry], "the lookup")
                        let given = store.peekBody(of: entry)
                        run.check(given.map { $0.array == bytes } ?? true, "bytes other than the \(length) written")
                        run.equal(try await store.wholeBody(of: entry), bytes, "the body of \(length) bytes")
                    }
                }
            }
            for change in BodyChange.allCases {
                try await run.with { store in
                    let sibling = try await store.put("a", variant: "sibling", [9])
                    let old = try await store.put("a", [1, 2, 3])
                    for _ in 0..<3 {
                        _ = try await store.get("a")
                        for entry in [old, sibling] { _ = try await store.wholeBody(of: entry) }
                    }
                    let new = try await change.make(of: old, in: store)
                    run.check(store.peekBody(of: old) == nil, "a body was returned although its entry was \(change)")
                    for (entry, bytes) in new + (change.sparesSiblings ? [(sibling, [9])] : []) {
                        let given = store.peekBody(of: entry)
                        run.check(given.map { $0.array == bytes } ?? true, "another body after one was \(change)")
                    }
                    if !change.sparesSiblings {
                        run.check(
                            store.peekBody(of: sibling) == nil,
                            "a body was returned although its entry was \(change)"
                        )
                    }
                }
            }
        },
        Law("Variants are listed newest first, and replaced one by one") { run in
            try await run.with { store in
                for number in 0..<8 { try await store.put("a", variant: "\(number)", [UInt8(number)]) }
                let before = try await store.get("a")
                run.equal(before.map(\.variant), (0..<8).reversed().map { StoreKey("\($0)") }, "the order")
                guard let old = before.first(where: { $0.variant == StoreKey("3") }) else { return }
                let new = try await store.put("a", variant: "3", [33])
                run.check(new.version > old.version, "the newer version is not higher")
                let after = try await store.get("a")
                run.equal(after, [new] + before.filter { $0 != old }, "after one was replaced")
                run.equal(try await store.wholeBody(of: new), [33], "the new body")
                // A snapshot may keep its bytes; it must not show those of another version.
                do {
                    run.equal(try await store.wholeBody(of: old), [3], "the old body")
                } catch let error as StoreError {
                    run.check(error.code == .superseded, "opening the old version threw \(error.code)")
                }
            }
        },
        Law("At least 8 variants of a key are kept before one is evicted, and a pinned one never is") { run in
            try await run.with { store in
                let pinned = try await store.put("a", variant: "pinned", [0])
                run.check(try await store.setPinned(true, pinned), "the pin was refused")
                for number in 0..<40 {
                    try await store.put("a", variant: "\(number)", [UInt8(number)])
                    let kept = try await store.get("a")
                    run.check(kept.count >= min(8, number + 2), "\(kept.count) variants after \(number + 2)")
                    run.equal(kept.first?.variant, StoreKey("\(number)"), "the newest")
                    run.check(kept.contains { $0.variant == pinned.variant && $0.isPinned }, "the pinned one is gone")
                }
            }
        },
        Law("A freshened entry keeps its body, its time and the other variants, under a higher version") { run in
            try await run.with { store in
                let other = try await store.put("a", variant: "other", [9])
                let old = try await store.put("a", [1, 2, 3], EntryDescription("old", tags: ["o"]), now: .at(1))
                let written = store.statistics.bytesWritten
                let description = EntryDescription("new", uselessAfter: .at(50), tags: ["x"])
                guard let new = try await store.replaceDescription(of: old, with: description, now: .at(5)) else {
                    return run.report("the entry is said to be gone")
                }
                run.check(new.version > old.version, "the version is not higher")
                run.equal(new.description, description, "description")
                run.equal(new.storedAt, .at(1), "stored at")
                run.equal(store.statistics.bytesWritten, written, "body bytes written")
                run.equal(try await store.get("a"), [new, other], "the lookup")
                run.equal(try await store.wholeBody(of: new), [1, 2, 3], "body")
                let late = try await store.replaceDescription(of: old, with: EntryDescription("late"), now: .at(6))
                run.check(late == nil, "an outdated version was freshened")
                run.equal(try await store.get("a"), [new, other], "after an outdated version was not freshened")
            }
        },
        Law("A removal affects one version of one variant") { run in
            try await run.with { store in
                let first = try await store.put("a", variant: "1", [1])
                let second = try await store.put("a", variant: "2", [2])
                let newer = try await store.put("a", variant: "1", [11])
                try await store.remove(first)
                run.equal(try await store.get("a"), [newer, second], "after an old version was removed")
                try await store.remove(newer)
                run.equal(try await store.get("a"), [second], "after one variant was removed")
                try await store.remove(second)
                run.equal(try await store.get("a"), [], "after both were removed")
                run.equal(store.statistics.entriesRemoved, 2, "entries removed")
                run.equal(store.statistics.entryCount, 0, "entries held")
            }
        },
        Law("Tags within the limits are kept") { run in
            try await run.with { store in
                let long = String(repeating: "x", count: 1_025)
                let longest = String(repeating: "y", count: 1_024)
                let few = try await store.put("few", [], EntryDescription("m", tags: ["a", long, longest, ""]))
                run.equal(few.description.tags, ["a", longest, ""], "tags")
                let tags = Set((0..<100).map { "tag\($0)" })
                let many = try await store.put("many", [], EntryDescription("m", tags: tags))
                run.equal(many.description.tags.count, 64, "tags kept of 100")
                run.check(many.description.tags.isSubset(of: tags), "a tag nobody gave")
                run.equal(try await store.get("many"), [many], "the lookup")
            }
        },
        Law("Statistics count lookups, entries and bytes") { run in
            try await run.with { store in
                let entry = try await store.put("a", [1, 2, 3])
                _ = try await store.get("a")
                let peeked = store.peek(StoreKey("a"), now: .at(0)) == nil ? 0 : 1
                _ = try await store.get("b")
                _ = try await store.wholeBody(of: entry)
                let statistics = store.statistics
                run.equal(statistics.lookups, 2 + peeked, "look-ups")
                run.equal(statistics.lookupsFound, 1 + peeked, "lookups that found something")
                run.equal(statistics.entriesWritten, 1, "entries written")
                run.equal(statistics.bytesWritten, 3, "bytes written")
                run.equal(statistics.bytesRead, 3, "bytes read")
                run.equal(statistics.entryCount, 1, "entries held")
                run.equal(statistics.capacity, 16 << 20, "capacity")
                run.check((4...statistics.capacity).contains(statistics.bytesUsed), "bytes used")
            }
        },
        Law("A closed store refuses, and can be closed again") { run in
            try await run.with { store in
                let entry = try await store.put("a", [1])
                let writer = try await store.writer("b")
                await store.close()
                await store.close()
                run.check(store.peek(StoreKey("a"), now: .at(0))?.isEmpty ?? true, "a look-up shows an entry")
                await run.throwing(.closed, "a look-up") { _ = try await store.get("a") }
                await run.throwing(.closed, "a write") { _ = try await store.put("c", [1]) }
                await run.throwing(.closed, "opening a body") { _ = try await store.body(of: entry) }
                await run.throwing(.closed, "a removal") { try await store.remove(entry) }
                await run.throwing(.closed, "an invalidation") { try await store.invalidate(StoreKey("a")) }
                await run.throwing(.closed, "a purge") { try await store.purge(.all, now: .at(0)) }
                await run.throwing(.closed, "a pin") { try await store.setPinned(true, entry) }
                await run.throwing(.closed, "a list") { _ = try await store.list(after: nil, limit: 1, now: .at(0)) }
                await run.throwing(.closed, "freshening") {
                    try await store.replaceDescription(of: entry, with: EntryDescription("m"), now: .at(0))
                }
                await run.throwing(.closed, "appending") { try await writer.append(ByteChunk([1])) }
            }
        },
    ]
}

/// A change that ends a version.
private enum BodyChange: CaseIterable {
    case removed, replaced, freshened, invalidated, purged, closed

    /// Whether other variants of the key remain.
    var sparesSiblings: Bool { self == .removed || self == .replaced || self == .freshened }

    /// - Returns: what has replaced it, with its body.
    func make(of old: StoredEntry, in store: any CacheStore) async throws -> [(StoredEntry, [UInt8])] {
        switch self {
        case .removed: try await store.remove(old)
        case .replaced: return [(try await store.put("a", [4, 5]), [4, 5])]
        case .freshened:
            let new = try await store.replaceDescription(of: old, with: EntryDescription("new"), now: .at(1))
            return new.map { [($0, [1, 2, 3])] } ?? []
        case .invalidated: try await store.invalidate(StoreKey("a"))
        case .purged: try await store.purge(.all, now: .at(1))
        case .closed: await store.close()
        }
        return []
    }
}

extension StoreConformance {
    static let listLaws = [
        Law("A list shows every entry once, on pages of any size, and is not counted as use") { run in
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
                    run.check(Set(listed.map(\.entry)) == expected, "entries other than those in a lookup")
                    run.check(listed.allSatisfy { $0.bytes >= 3 }, "fewer bytes than the body")
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
        Law("A list shows no entry that is being written, and an arbitrary cursor does no harm") { run in
            try await run.with { store in
                let writer = try await store.writer("k")
                run.check(try await store.listed(limit: 5).isEmpty, "an entry that is being written is listed")
                let entry = try await writer.commit(nil, now: .at(0))
                run.equal(try await store.listed(limit: 5).map(\.entry), [entry], "after the commit")
                for bytes in [[], [1], [UInt8](repeating: 255, count: 8), [UInt8](repeating: 255, count: 40)] {
                    let page = try? await store.list(after: StoreCursor(bytes), limit: .max, now: .at(0))
                    run.check((page?.listed.count ?? 0) <= 1, "more entries than exist")
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
