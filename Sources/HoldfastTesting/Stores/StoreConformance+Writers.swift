// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let writerLaws = [
        Law("Nothing shows before the commit, which may bring another description") { run in
            try await run.with { store in
                let writer = try await store.writer("a", EntryDescription("first"))
                try await writer.append(ByteChunk([1]))
                run.equal(try await store.get("a"), [], "before the commit")
                run.equal(store.statistics.entryCount, 0, "entries before the commit")
                let entry = try await writer.commit(EntryDescription("second", tags: ["t"]), now: .at(3))
                run.equal(entry.description, EntryDescription("second", tags: ["t"]), "description")
                run.equal(entry.storedAt, .at(3), "stored at")
                run.equal(try await store.get("a"), [entry], "after the commit")
                let kept = try await store.put("b", [], EntryDescription("kept"))
                run.equal(kept.description.text, "kept", "a description that no commit replaced")
                await run.throwing(.abandoned, "a second commit") { try await writer.commit(nil, now: .at(4)) }
                writer.abandon()
                run.equal(try await store.get("a"), [entry], "after the ended writer was abandoned")
            }
        },
        Law("An entry that is put in one step is as one that a writer wrote") { run in
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
                    run.equal(entry.description, description, "the description")
                    run.equal(entry.bodyLength, length, "the length")
                    run.equal(entry.storedAt, .at(length), "stored at")
                    run.equal(try await store.get("k"), [entry], "the look-up, in place of the one before")
                    run.equal(try await store.wholeBody(of: entry), bytes, "the body of \(length) bytes")
                    run.equal(store.statistics.entryCount, 1, "entries")
                }
                try await store.purge(.tag("t"), now: .at(1))
                run.equal(try await store.get("k"), [], "after a purge by its tag")
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
                        await run.throwing(.abandoned, "appending") { try await ended?.append(ByteChunk([1])) }
                        await run.throwing(.abandoned, "the commit") { _ = try await ended?.commit(nil, now: .at(0)) }
                    }
                    writer = nil
                    await run.throwing(.abandoned, "following") { _ = try await body?.whole() }
                    run.equal(try await store.get("a"), [kept], "the key")
                    run.equal(store.statistics.entriesWritten, before.entriesWritten, "entries written")
                    run.equal(store.statistics.bytesWritten, before.bytesWritten, "bytes written")
                    run.equal(store.statistics.entryCount, before.entryCount, "entries held")
                }
            }
        },
        Law("Of two writers of a variant the later commit counts") { run in
            try await run.with { store in
                let (first, second) = (try await store.writer("a"), try await store.writer("a"))
                try await first.append(ByteChunk([1]))
                try await second.append(ByteChunk([2]))
                let earlier = try await second.commit(nil, now: .at(1))
                let later = try await first.commit(nil, now: .at(2))
                run.check(later.version > earlier.version, "the later version is not higher")
                run.equal(try await store.get("a"), [later], "the look-up")
                run.equal(try await store.wholeBody(of: later), [1], "the body")
            }
        },
        Law("An open body outlives its entry") { run in
            try await run.with { store in
                var generator = SeededGenerator(seed: run.seed)
                for length in [1_000, 150_000, 700_000] {
                    let bytes = generator.bytes(length)
                    let body = try await store.body(of: try await store.put("a", bytes))
                    run.equal(try await body.read(from: 0, upTo: 10).array, Array(bytes[..<10]), "the first bytes")
                    try await store.put("a", [1])
                    run.equal(try await body.whole(), bytes, "after the entry was replaced")
                    try await store.purge(.all, now: .at(0))
                    run.equal(try await body.whole(), bytes, "after a purge")
                    if length < 700_000 { continue }
                    for number in 0..<30 { try await store.put("k\(number)", [UInt8](repeating: 3, count: length)) }
                    run.equal(try await body.whole(), bytes, "after its space was needed")
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
                    run.equal(last.length, nil, "the length before the commit")
                    run.equal(
                        try await last.read(from: 5, upTo: 3).array,
                        Array(bytes[5..<8]),
                        "bytes before the commit"
                    )
                    let entry = try await writer.commit(nil, now: .at(0))
                    run.equal(last.length, bytes.count, "the length after the commit")
                    group.addTask { try await last.whole() }
                    let late = writer.follow()
                    group.addTask { try await late.whole(piece: 333_333) }
                    group.addTask { try await store.wholeBody(of: entry) }
                    for try await read in group { run.equal(read, bytes, "what a follower read") }
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
                run.equal(try await reader.value, Array(0..<9), "what the early one read")
                for byte in UInt8(0)..<9 {
                    run.equal(try await slow.read(from: Int(byte), upTo: 1).array, [byte], "what the slow one read")
                }
                run.check(try await slow.read(from: 9, upTo: 1).isEmpty, "bytes past the end")
                let empty = try await store.writer("b")
                let none = empty.follow()
                try await empty.commit(nil, now: .at(0))
                run.equal(try await none.whole(), [], "a body without bytes")
            }
        },
        Law("A cancelled follower stops waiting, the others go on") { run in
            try await run.with { store in
                let writer = try await store.writer("a")
                let body = writer.follow()
                let cancelled = Task { await run.code { _ = try await body.read(from: 0, upTo: 1) } }
                let patient = Task { try await body.whole() }
                cancelled.cancel()
                run.equal(await cancelled.value, StoreError.Code.cancelled.description, "the cancelled read")
                try await writer.append(ByteChunk([1, 2]))
                try await writer.commit(nil, now: .at(0))
                run.equal(try await patient.value, [1, 2], "what the other one read")
            }
        },
        Law("Followers of a writer that gives up are told so") { run in
            try await run.with { store in
                let writer = try await store.writer("a")
                let waiting = writer.follow()
                let reader = Task { await run.code { _ = try await waiting.read(from: 100, upTo: 1) } }
                try await writer.append(ByteChunk([1, 2]))
                writer.abandon()
                run.equal(await reader.value, StoreError.Code.abandoned.description, "the one that waited")
                let late = writer.follow()
                await run.throwing(.abandoned, "the one that came late") { _ = try await late.read(from: 0, upTo: 1) }
                run.equal(waiting.length, nil, "the length")
            }
        },
    ]
}
