// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let writerLaws = [
        Law("Nothing appears before the commit, which may pass another description") { run in
            try await run.with { store in
                let writer = try await store.writer("a", description: EntryDescription("first"))
                try await writer.append(ByteChunk([1]))
                run.equal(try await store.get("a"), to: [], for: "before the commit")
                run.equal(store.statistics.entryCount, to: 0, for: "entries before the commit")
                let entry = try await writer.commit(EntryDescription("second", tags: ["t"]), now: .at(3))
                run.equal(entry.description, to: EntryDescription("second", tags: ["t"]), for: "description")
                run.equal(entry.storedAt, to: .at(3), for: "stored at")
                run.equal(try await store.get("a"), to: [entry], for: "after the commit")
                let kept = try await store.put("b", [], EntryDescription("kept"))
                run.equal(kept.description.text, to: "kept", for: "a description that no commit replaced")
                await run.throwing(.abandoned, what: "a second commit") { try await writer.commit(nil, now: .at(4)) }
                writer.abandon()
                run.equal(try await store.get("a"), to: [entry], for: "after the ended writer was abandoned")
            }
        },
        Law("An entry that is put in one step equals one that a writer wrote") { run in
            var generator = SeededGenerator(seed: run.seed)
            try await run.with { store in
                for length in [0, 1, 5_000, 70_000, 300_000] {
                    let bytes = generator.bytes(length)
                    let description = EntryDescription("d\(length)", tags: ["t"])
                    let entry = try await store.put(
                        StoreKey("k"),
                        variant: StoreKey("v"),
                        description: description,
                        body: ByteChunk(bytes),
                        now: .at(length)
                    )
                    run.equal(entry.description, to: description, for: "the description")
                    run.equal(entry.bodyLength, to: length, for: "the length")
                    run.equal(entry.storedAt, to: .at(length), for: "stored at")
                    run.equal(try await store.get("k"), to: [entry], for: "the lookup, instead of the earlier one")
                    run.equal(try await store.wholeBody(of: entry), to: bytes, for: "the body of \(length) bytes")
                    run.equal(store.statistics.entryCount, to: 1, for: "entries")
                }
                try await store.purge(.tag("t"), now: .at(1))
                run.equal(try await store.get("k"), to: [], for: "after a purge by its tag")
            }
        },
        Law("An abandoned or dropped writer leaves nothing and counts as nothing") { run in
            for drops in [true, false] {
                try await run.with { store in
                    let kept = try await store.put("a", [7])
                    let before = store.statistics
                    var writer: (any EntryWriter)? = try await store.writer("a")
                    try await writer?.append(ByteChunk([UInt8](repeating: 1, count: 300_000)))
                    let body = writer?.follow()
                    if !drops {
                        writer?.abandon()
                        writer?.abandon()
                        let ended = writer
                        await run.throwing(.abandoned, what: "appending") { try await ended?.append(ByteChunk([1])) }
                        await run.throwing(.abandoned, what: "the commit") {
                            _ = try await ended?.commit(nil, now: .at(0))
                        }
                    }
                    writer = nil
                    await run.throwing(.abandoned, what: "following") { _ = try await body?.whole() }
                    run.equal(try await store.get("a"), to: [kept], for: "the key")
                    run.equal(store.statistics.entriesWritten, to: before.entriesWritten, for: "entries written")
                    run.equal(store.statistics.bytesWritten, to: before.bytesWritten, for: "bytes written")
                    run.equal(store.statistics.entryCount, to: before.entryCount, for: "entries held")
                }
            }
        },
        Law("Of two writers of a variant, the later commit counts") { run in
            try await run.with { store in
                let (first, second) = (try await store.writer("a"), try await store.writer("a"))
                try await first.append(ByteChunk([1]))
                try await second.append(ByteChunk([2]))
                let earlier = try await second.commit(nil, now: .at(1))
                let later = try await first.commit(nil, now: .at(2))
                run.check(later.version > earlier.version, or: "the later version is not higher")
                run.equal(try await store.get("a"), to: [later], for: "the lookup")
                run.equal(try await store.wholeBody(of: later), to: [1], for: "the body")
            }
        },
        Law("An open body outlives its entry") { run in
            try await run.with { store in
                var generator = SeededGenerator(seed: run.seed)
                for length in [1_000, 150_000, 700_000] {
                    let bytes = generator.bytes(length)
                    let body = try await store.body(of: try await store.put("a", bytes))
                    run.equal(
                        try await body.read(from: 0, upTo: 10).array,
                        to: Array(bytes[..<10]),
                        for: "the first bytes"
                    )
                    try await store.put("a", [1])
                    run.equal(try await body.whole(), to: bytes, for: "after the entry was replaced")
                    try await store.purge(.all, now: .at(0))
                    run.equal(try await body.whole(), to: bytes, for: "after a purge")
                    if length < 700_000 { continue }
                    for number in 0..<30 { try await store.put("k\(number)", [UInt8](repeating: 3, count: length)) }
                    run.equal(try await body.whole(), to: bytes, for: "after its space was needed")
                }
            }
        },
    ]

    static let followerLaws = [
        Law("Followers read all bytes in order, each at its own pace") { run in
            try await run.with(capacity: 64 << 20) { store in
                var generator = SeededGenerator(seed: run.seed)
                let bytes = generator.bytes(1_500_000)
                let writer = try await store.writer("a")
                try await withThrowingTaskGroup(of: [UInt8].self) { group in
                    var start = 0
                    while start < bytes.count {
                        if start == 0 || Int.random(in: 0..<4, using: &generator) == 0 {
                            let body = writer.follow()
                            let piece = Int.random(in: 1_000...200_000, using: &generator)
                            group.addTask { try await body.whole(piece: piece) }
                        }
                        let count = min(bytes.count - start, Int.random(in: 1...150_000, using: &generator))
                        try await writer.append(ByteChunk(Array(bytes[start..<(start + count)])))
                        start += count
                    }
                    let last = writer.follow()
                    run.equal(last.length, to: nil, for: "the length before the commit")
                    run.equal(
                        try await last.read(from: 5, upTo: 3).array,
                        to: Array(bytes[5..<8]),
                        for: "bytes before the commit"
                    )
                    let entry = try await writer.commit(nil, now: .at(0))
                    run.equal(last.length, to: bytes.count, for: "the length after the commit")
                    group.addTask { try await last.whole() }
                    let late = writer.follow()
                    group.addTask { try await late.whole(piece: 333_333) }
                    group.addTask { try await store.wholeBody(of: entry) }
                    for try await read in group { run.equal(read, to: bytes, for: "the bytes that a follower read") }
                }
            }
        },
        Law("A follower may begin before the first byte, and a slow one after the commit") { run in
            try await run.with { store in
                let writer = try await store.writer("a")
                let (early, slow) = (writer.follow(), writer.follow())
                let reader = Task { try await early.whole(piece: 2) }
                for byte in UInt8(0)..<9 { try await writer.append(ByteChunk([byte])) }
                try await writer.commit(nil, now: .at(0))
                run.equal(try await reader.value, to: Array(0..<9), for: "the bytes that the early one read")
                for byte in UInt8(0)..<9 {
                    run.equal(
                        try await slow.read(from: Int(byte), upTo: 1).array,
                        to: [byte],
                        for: "the bytes that the slow one read"
                    )
                }
                run.check(try await slow.read(from: 9, upTo: 1).isEmpty, or: "bytes past the end")
                let empty = try await store.writer("b")
                let none = empty.follow()
                try await empty.commit(nil, now: .at(0))
                run.equal(try await none.whole(), to: [], for: "a body without bytes")
            }
        },
        Law("A cancelled follower stops waiting, and the others continue") { run in
            try await run.with { store in
                let writer = try await store.writer("a")
                let body = writer.follow()
                let cancelled = Task { await run.code { _ = try await body.read(from: 0, upTo: 1) } }
                let patient = Task { try await body.whole() }
                cancelled.cancel()
                run.equal(await cancelled.value, to: StoreError.Code.cancelled.description, for: "the cancelled read")
                try await writer.append(ByteChunk([1, 2]))
                try await writer.commit(nil, now: .at(0))
                run.equal(try await patient.value, to: [1, 2], for: "the bytes that the other one read")
            }
        },
        Law("Followers of a writer that gives up get an error") { run in
            try await run.with { store in
                let writer = try await store.writer("a")
                let waiting = writer.follow()
                let reader = Task { await run.code { _ = try await waiting.read(from: 100, upTo: 1) } }
                try await writer.append(ByteChunk([1, 2]))
                writer.abandon()
                run.equal(await reader.value, to: StoreError.Code.abandoned.description, for: "the one that waited")
                let late = writer.follow()
                await run.throwing(.abandoned, what: "the one that came late") {
                    _ = try await late.read(from: 0, upTo: 1)
                }
                run.equal(waiting.length, to: nil, for: "the length")
            }
        },
        Law("A follower reads on although its entry is gone after the commit") { run in
            var generator = SeededGenerator(seed: run.seed)
            try await run.with { store in
                // A store may keep the first with its description, the second elsewhere, and the third in several parts.
                for length in [1_000, 20_000, 300_000] {
                    let bytes = ByteChunk(generator.bytes(length))
                    for change in BodyChange.allCases where change != .closed {
                        let writer = try await store.writer("a")
                        let body = writer.follow()
                        for start in stride(from: 0, to: length, by: length / 4) {
                            try await writer.append(bytes[start..<(start + length / 4)])
                        }
                        _ = try await body.read(from: 0, upTo: 10)
                        let entry = try await writer.commit(nil, now: .at(0))
                        _ = try await change.make(of: entry, in: store)
                        run.equal(try await body.whole(), to: bytes.array, for: "\(length) bytes, the entry \(change)")
                    }
                }
            }
        },
    ]
}

extension StoreConformance {
    private static let capacity = 4 << 20
    /// A body; about seven of them fill a store.
    private static let large = [UInt8](repeating: 1, count: 600_000)

    static let spaceLaws = [
        Law("The capacity is never exceeded, and written entries are there afterward") { run in
            try await run.with(capacity: capacity) { store, subject in
                var generator = SeededGenerator(seed: run.seed)
                var open: [any EntryWriter] = []
                for step in 0..<200 {
                    try await crowd(store, step: step, open: &open, generator: &generator, run: run)
                    checkCapacity(of: subject, after: "step \(step)", run: run)
                }
                run.check(store.statistics.entriesEvicted > 0, or: "nothing was counted as evicted")
            }
            // A full store, in which only descriptions grow.
            try await run.with(capacity: capacity) { store, subject in
                let body = [UInt8](repeating: 1, count: 100_000)
                let description = EntryDescription(String(repeating: "d", count: body.count))
                for number in 0..<50 { try await store.put("k\(number)", body) }
                for number in 0..<50 {
                    for entry in try await store.get("k\(number)") {
                        _ = try? await store.replaceDescription(of: entry, with: description, now: .at(1))
                    }
                    checkCapacity(of: subject, after: "the longer description of k\(number)", run: run)
                }
            }
        },
        Law("Pinned entries stay, and take at most half of the capacity") { run in
            try await run.with(capacity: capacity) { store in
                var pinned: [StoredEntry] = []
                for number in 0..<5 {
                    let entry = try await store.put("pin\(number)", large)
                    if try await store.setPinned(true, entry) { pinned.append(entry) }
                }
                let bytes = pinned.count * large.count
                run.check(bytes > 0 && bytes <= capacity / 2, or: "\(bytes) of \(capacity) bytes are pinned")
                for number in 0..<12 {
                    let entry = try await store.put("k\(number)", large)
                    run.equal(try await store.get("k\(number)"), to: [entry], for: "the entry written last")
                }
                for entry in pinned {
                    let there = try await store.entries(for: entry.key, now: .at(0))
                    run.equal(there.first?.version, to: entry.version, for: "a pinned entry")
                    run.equal(there.first?.isPinned, to: true, for: "its pin")
                    run.equal(try await store.wholeBody(of: entry), to: large, for: "its body")
                }
                guard let first = pinned.first else { return }
                run.check(try await store.setPinned(false, first), or: "a pin was not released")
                run.equal(
                    try await store.entries(for: first.key, now: .at(0)).first?.isPinned ?? false,
                    to: false,
                    for: "its pin after the release"
                )
                for number in 0..<10 { try await store.put("m\(number)", large) }
                try await store.purge(.keyPrefix(Array("pin".utf8)), now: .at(1))
                run.check(try await !store.setPinned(true, first), or: "an entry that is gone was pinned")
                let last = try await store.put("last", large)
                run.check(try await store.setPinned(true, last), or: "a pin was refused although none is left")
            }
        },
        Law("A pin outlives freshening and replacement") { run in
            try await run.with(capacity: capacity) { store in
                let first = try await store.put("a", [1])
                run.check(try await store.setPinned(true, first), or: "the pin was refused")
                run.check(try await store.put("a", [2]).isPinned, or: "the newer version is not pinned")
                run.check(try await !store.setPinned(false, first), or: "a version that is gone was unpinned")
                guard let entry = try await store.get("a").first else { return run.report("it is gone") }
                let fresh = try await store.replaceDescription(of: entry, with: EntryDescription("n"), now: .at(1))
                run.equal(fresh?.isPinned, to: true, for: "the pin after freshening")
                run.equal(try await store.get("a").first?.isPinned, to: true, for: "the pin in a lookup")
            }
        },
        Law("An entry that cannot fit is rejected, at once if its length is known") { run in
            try await run.with(capacity: capacity) { store in
                let kept = try await store.put("b", [7])
                for length in [capacity, .max] {
                    await run.throwing(.tooLarge, what: "a write of \(length) bytes") {
                        _ = try await store.writer("a", expecting: length)
                    }
                }
                let writer = try await store.writer("a", expecting: -1)
                let part = ByteChunk([UInt8](repeating: 1, count: 100_000))
                await run.throwing(.tooLarge, what: "a body that grows past the capacity") {
                    for _ in 0...(capacity / part.count) { try await writer.append(part) }
                }
                await run.throwing(.abandoned, what: "its commit") { try await writer.commit(nil, now: .at(0)) }
                run.equal(try await store.get("a"), to: [], for: "its key")
                run.equal(try await store.get("b"), to: [kept], for: "another key")
                let metadata = EntryDescription(metadata: ByteChunk([UInt8](repeating: 1, count: 2 * capacity)))
                await run.throwing(.tooLarge, what: "a description larger than the store") {
                    _ = try await store.writer("a", description: metadata)
                }
                run.equal(try await store.get("b"), to: [kept], for: "another key afterward")
            }
        },
        Law("Abandoned bodies release their space without evicting anything") { run in
            try await run.with(capacity: capacity) { store in
                let kept = try await store.put("kept", [7])
                for number in 0..<30 {
                    let writer = try await store.writer("k\(number)")
                    try await writer.append(ByteChunk(large))
                    writer.abandon()
                }
                run.equal(try await store.get("kept"), to: [kept], for: "an earlier entry")
                let entry = try await store.put("large", large)
                run.equal(try await store.get("large"), to: [entry], for: "a large entry afterward")
                run.equal(store.statistics.entriesWritten, to: 2, for: "entries written")
                run.equal(store.statistics.bytesWritten, to: large.count + 1, for: "bytes written")
            }
        },
    ]

    private static func checkCapacity(of subject: StoreSubject, after step: String, run: LawRun) {
        let used = subject.store.statistics.bytesUsed
        run.check(used <= capacity, or: "\(used) of \(capacity) bytes are used after \(step)")
        if let held = subject.heldBytes?() {
            run.check(held <= capacity, or: "\(held) of \(capacity) bytes are held after \(step)")
        }
    }

    /// One of many random steps that need more space than there is.
    private static func crowd(
        _ store: any CacheStore,
        step: Int,
        open: inout [any EntryWriter],
        generator: inout SeededGenerator,
        run: LawRun
    ) async throws {
        let key = "k\(Int.random(in: 0..<20, using: &generator))"
        switch Int.random(in: 0..<8, using: &generator) {
        case 0...2:
            let size = Int.random(in: 0...600_000, using: &generator)
            let variant = "\(step % 3)"
            if let entry = try? await store.put(key, variant: variant, [UInt8](repeating: 1, count: size)) {
                let there = try await store.get(key).first { $0.variant == entry.variant }
                run.equal(there, to: entry, for: "step \(step): the entry just written")
            }
        case 3:
            let description = EntryDescription(String(repeating: "m", count: step))
            if let writer = try? await store.writer(key, variant: "w", description: description) { open.append(writer) }
        case 4:
            let size = Int.random(in: 0...400_000, using: &generator)
            try? await open.randomElement(using: &generator)?.append(ByteChunk([UInt8](repeating: 2, count: size)))
        case 5:
            if let writer = open.popLast() { _ = try? await writer.commit(nil, now: .at(step)) }
        case 6:
            for entry in try await store.get(key) {
                _ = try? await store.setPinned(Bool.random(using: &generator), entry)
            }
        default:
            for entry in try await store.get(key) {
                let text = String(repeating: "d", count: Int.random(in: 0...30_000, using: &generator))
                _ = try? await store.replaceDescription(of: entry, with: EntryDescription(text), now: .at(step))
            }
        }
        // Entries being written occupy space; a store full of them could evict nothing more.
        if open.count > 4 { open.removeFirst().abandon() }
    }
}
