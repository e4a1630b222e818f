// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let entryLaws = [
        Law("A committed entry is found with its description and its body") { run in
            try await run.with { store in
                run.check(try await store.get("a").isEmpty, or: "an empty store has an entry")
                let secret = store.secret
                let description = EntryDescription("head", uselessAfter: .at(99), tags: ["t", "u"])
                let put = try await store.put("a", variant: "v", Array("hello".utf8), description, now: .at(7))
                run.equal(try await store.get("a"), to: [put], for: "the lookup")
                run.equal(put.key, to: StoreKey("a"), for: "key")
                run.equal(put.variant, to: StoreKey("v"), for: "variant")
                run.equal(put.description, to: description, for: "description")
                run.equal(put.bodyLength, to: 5, for: "body length")
                run.equal(put.storedAt, to: .at(7), for: "stored at")
                run.check(!put.isPinned && !put.needsValidation, or: "pinned or in need of validation from the start")
                run.equal(try await store.wholeBody(of: put), to: Array("hello".utf8), for: "body")
                run.check(try await store.get("b").isEmpty, or: "another key has an entry")
                run.check(secret.count >= 16, or: "the secret is shorter than 16 bytes")
                run.equal(store.secret, to: secret, for: "the secret")
            }
        },
        Law("A lookup that does not suspend returns what the other one returns, or nothing") { run in
            try await run.with { store in
                let put = try await store.put("a", [1])
                for _ in 0..<3 {
                    let (a, b) = (store.peek(StoreKey("a"), now: .at(0)), store.peek(StoreKey("b"), now: .at(0)))
                    run.check(a == nil || a == [put], or: "it returns \(a ?? []) instead of \(put)")
                    run.check(b?.isEmpty ?? true, or: "it returns an entry that is not there")
                    _ = try await store.wholeBody(of: put)
                }
                try await store.remove(put)
                run.check(store.peek(StoreKey("a"), now: .at(0))?.isEmpty ?? true, or: "it shows what was removed")
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
                    run.equal(try await store.get(key), to: expected[key] ?? [], for: "key of \(key.utf8.count) bytes")
                    for entry in expected[key] ?? [] {
                        let variant = String(decoding: entry.variant.bytes, as: UTF8.self)
                        let body = Array("\(key.utf8.count)|\(variant)".utf8)
                        run.equal(try await store.wholeBody(of: entry), to: body, for: "body of \(variant.utf8.count)")
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
                    run.equal(entry.bodyLength, to: length, for: "length")
                    // Twice, since a store may answer from another place the second time.
                    for _ in 0..<2 {
                        let body = try await store.body(of: entry)
                        run.equal(body.length, to: length, for: "length of the open body")
                        run.equal(
                            try await body.whole(piece: 1_001 + length / 20),
                            to: bytes,
                            for: "\(length) bytes in small pieces"
                        )
                        run.equal(try await body.whole(piece: .max), to: bytes, for: "\(length) bytes at once")
                        run.check(try await body.read(from: length + 5, upTo: 10).isEmpty, or: "bytes past the end")
                        run.check(try await body.read(from: .max, upTo: .max).isEmpty, or: "bytes far past the end")
                        run.check(try await body.read(from: 0, upTo: 0).isEmpty, or: "bytes that nobody requested")
                        for _ in 0..<8 where length > 0 {
                            let offset = Int.random(in: 0..<length, using: &generator)
                            let count = Int.random(in: 1...70_000, using: &generator)
                            let piece = try await body.read(from: offset, upTo: count).array
                            run.check(!piece.isEmpty, or: "no bytes at \(offset) of \(length)")
                            let expected = Array(bytes[offset...].prefix(min(count, piece.count)))
                            run.equal(piece, to: expected, for: "bytes at \(offset)")
                        }
                        if let whole = body.bytesInMemory { run.equal(whole.array, to: bytes, for: "bytes in memory") }
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
                        run.equal(try await store.get("k\(length)"), to: [entry], for: "the lookup")
                        let given = store.peekBody(of: entry)
                        run.check(given.map { $0.array == bytes } ?? true, or: "bytes other than the \(length) written")
                        run.equal(try await store.wholeBody(of: entry), to: bytes, for: "the body of \(length) bytes")
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
                    run.check(
                        store.peekBody(of: old) == nil,
                        or: "a body was returned although its entry was \(change)"
                    )
                    for (entry, bytes) in new + (change.sparesSiblings ? [(sibling, [9])] : []) {
                        let given = store.peekBody(of: entry)
                        run.check(given.map { $0.array == bytes } ?? true, or: "another body after one was \(change)")
                    }
                    if !change.sparesSiblings {
                        run.check(
                            store.peekBody(of: sibling) == nil,
                            or: "a body was returned although its entry was \(change)"
                        )
                    }
                }
            }
        },
        Law("Variants are listed newest first, and replaced one by one") { run in
            try await run.with { store in
                for number in 0..<8 { try await store.put("a", variant: "\(number)", [UInt8(number)]) }
                let before = try await store.get("a")
                run.equal(before.map(\.variant), to: (0..<8).reversed().map { StoreKey("\($0)") }, for: "the order")
                guard let old = before.first(where: { $0.variant == StoreKey("3") }) else { return }
                let new = try await store.put("a", variant: "3", [33])
                run.check(new.version > old.version, or: "the newer version is not higher")
                let after = try await store.get("a")
                run.equal(after, to: [new] + before.filter { $0 != old }, for: "after one was replaced")
                run.equal(try await store.wholeBody(of: new), to: [33], for: "the new body")
                // A snapshot may keep its bytes; it must not show those of another version.
                do {
                    run.equal(try await store.wholeBody(of: old), to: [3], for: "the old body")
                } catch let error as StoreError {
                    run.check(error.code == .superseded, or: "opening the old version threw \(error.code)")
                }
            }
        },
        Law("At least 8 variants of a key are kept before one is evicted, and a pinned one never is") { run in
            try await run.with { store in
                let pinned = try await store.put("a", variant: "pinned", [0])
                run.check(try await store.setPinned(true, pinned), or: "the pin was refused")
                for number in 0..<40 {
                    try await store.put("a", variant: "\(number)", [UInt8(number)])
                    let kept = try await store.get("a")
                    run.check(kept.count >= min(8, number + 2), or: "\(kept.count) variants after \(number + 2)")
                    run.equal(kept.first?.variant, to: StoreKey("\(number)"), for: "the newest")
                    run.check(
                        kept.contains { $0.variant == pinned.variant && $0.isPinned },
                        or: "the pinned one is gone"
                    )
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
                run.check(new.version > old.version, or: "the version is not higher")
                run.equal(new.description, to: description, for: "description")
                run.equal(new.storedAt, to: .at(1), for: "stored at")
                run.equal(store.statistics.bytesWritten, to: written, for: "body bytes written")
                run.equal(try await store.get("a"), to: [new, other], for: "the lookup")
                run.equal(try await store.wholeBody(of: new), to: [1, 2, 3], for: "body")
                let late = try await store.replaceDescription(of: old, with: EntryDescription("late"), now: .at(6))
                run.check(late == nil, or: "an outdated version was freshened")
                run.check(try await !store.setPinned(true, old), or: "an outdated version was pinned")
                run.equal(
                    try await store.get("a"),
                    to: [new, other],
                    for: "after an outdated version was neither freshened nor pinned"
                )
            }
        },
        Law("A removal affects one version of one variant") { run in
            try await run.with { store in
                let first = try await store.put("a", variant: "1", [1])
                let second = try await store.put("a", variant: "2", [2])
                let newer = try await store.put("a", variant: "1", [11])
                let writer = try await store.writer("a", variant: "1")
                try await store.remove(first)
                run.equal(try await store.get("a"), to: [newer, second], for: "after an old version was removed")
                try await store.remove(newer)
                run.equal(try await store.get("a"), to: [second], for: "after one variant was removed")
                try await store.remove(second)
                run.equal(try await store.get("a"), to: [], for: "after both were removed")
                run.equal(store.statistics.entriesRemoved, to: 2, for: "entries removed")
                run.equal(store.statistics.entryCount, to: 0, for: "entries held")
                let written = try await writer.commit(nil, now: .at(1))
                run.equal(try await store.get("a"), to: [written], for: "the entry that was being written meanwhile")
            }
        },
        Law("Tags within the limits are kept") { run in
            try await run.with { store in
                let long = String(repeating: "x", count: 1_025)
                let longest = String(repeating: "y", count: 1_024)
                let few = try await store.put("few", [], EntryDescription("m", tags: ["a", long, longest, ""]))
                run.equal(few.description.tags, to: ["a", longest, ""], for: "tags")
                let tags = Set((0..<100).map { "tag\($0)" })
                let many = try await store.put("many", [], EntryDescription("m", tags: tags))
                run.equal(many.description.tags.count, to: 64, for: "tags kept of 100")
                run.check(many.description.tags.isSubset(of: tags), or: "a tag nobody gave")
                run.equal(try await store.get("many"), to: [many], for: "the lookup")
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
                run.equal(statistics.lookups, to: 2 + peeked, for: "look-ups")
                run.equal(statistics.lookupsFound, to: 1 + peeked, for: "lookups that found something")
                run.equal(statistics.entriesWritten, to: 1, for: "entries written")
                run.equal(statistics.bytesWritten, to: 3, for: "bytes written")
                run.equal(statistics.bytesRead, to: 3, for: "bytes read")
                run.equal(statistics.entryCount, to: 1, for: "entries held")
                run.equal(statistics.capacity, to: 16 << 20, for: "capacity")
                run.check((4...statistics.capacity).contains(statistics.bytesUsed), or: "bytes used")
            }
        },
        Law("A closed store refuses, and can be closed again") { run in
            try await run.with { store in
                let entry = try await store.put("a", [1])
                let writer = try await store.writer("b")
                await store.close()
                await store.close()
                run.check(store.peek(StoreKey("a"), now: .at(0))?.isEmpty ?? true, or: "a look-up shows an entry")
                await run.throwing(.closed, what: "a look-up") { _ = try await store.get("a") }
                await run.throwing(.closed, what: "a write") { _ = try await store.put("c", [1]) }
                await run.throwing(.closed, what: "opening a body") { _ = try await store.body(of: entry) }
                await run.throwing(.closed, what: "a removal") { try await store.remove(entry) }
                await run.throwing(.closed, what: "an invalidation") { try await store.invalidate(StoreKey("a")) }
                await run.throwing(.closed, what: "a purge") { try await store.purge(.all, now: .at(0)) }
                await run.throwing(.closed, what: "a pin") { try await store.setPinned(true, entry) }
                await run.throwing(.closed, what: "a list") {
                    _ = try await store.list(after: nil, limit: 1, now: .at(0))
                }
                await run.throwing(.closed, what: "freshening") {
                    try await store.replaceDescription(of: entry, with: EntryDescription("m"), now: .at(0))
                }
                await run.throwing(.closed, what: "appending") { try await writer.append(ByteChunk([1])) }
            }
        },
    ]
}

/// A change that ends a version.
enum BodyChange: CaseIterable {
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
                    run.equal(listed.count, to: expected.count, for: "entries on pages of \(limit)")
                    run.check(Set(listed.map(\.entry)) == expected, or: "entries other than those in a lookup")
                    run.check(listed.allSatisfy { $0.bytes >= 3 }, or: "fewer bytes than the body")
                    let hits = Dictionary(listed.map { ($0.entry, $0.hits) }, uniquingKeysWith: { first, _ in first })
                    run.check(known == nil || known == hits, or: "a list counts as hits")
                    known = hits
                    let page = try await store.list(after: nil, limit: limit, now: .at(0))
                    run.check(
                        page.listed.count <= max(1, limit),
                        or: "\(page.listed.count) entries on a page of \(limit)"
                    )
                }
                run.equal(store.statistics.lookups, to: before.lookups, for: "look-ups")
                run.equal(store.statistics.entryCount, to: before.entryCount, for: "entries held")
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
                run.check(cursor == nil, or: "the list has no end")
                for number in 0..<20 { run.equal(seen[StoreKey("stays\(number)")], to: 1, for: "stays\(number)") }
                run.check(seen.values.allSatisfy { $0 <= 1 }, or: "an entry is listed twice")
            }
        },
        Law("A list shows no entry that is being written, and an arbitrary cursor does no harm") { run in
            try await run.with { store in
                let writer = try await store.writer("k")
                run.check(try await store.listed(limit: 5).isEmpty, or: "an entry that is being written is listed")
                let entry = try await writer.commit(nil, now: .at(0))
                run.equal(try await store.listed(limit: 5).map(\.entry), to: [entry], for: "after the commit")
                for bytes in [[], [1], [UInt8](repeating: 255, count: 8), [UInt8](repeating: 255, count: 40)] {
                    let page = try? await store.list(after: StoreCursor(bytes), limit: .max, now: .at(0))
                    run.check((page?.listed.count ?? 0) <= 1, or: "more entries than exist")
                }
            }
        },
        Law("A list shows an entry's pin and what freshening changed") { run in
            try await run.with { store in
                let entry = try await store.put("a", [1])
                _ = try await store.setPinned(true, entry)
                let new = try await store.replaceDescription(of: entry, with: EntryDescription("new"), now: .at(1))
                run.equal(new?.isPinned, to: true, for: "the pin after freshening")
                run.equal(try await store.listed(limit: 5).map(\.entry), to: new.map { [$0] } ?? [], for: "the list")
            }
        },
    ]
}
