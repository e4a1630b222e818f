// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    private static let capacity = 4 << 20
    /// Bodies of which seven or so fill a store.
    private static let large = [UInt8](repeating: 1, count: 600_000)

    static let spaceLaws = [
        Law("The capacity is never exceeded, and what is written is there afterwards") { run in
            try await run.with(capacity: capacity) { store, subject in
                var generator = SeededGenerator(seed: run.seed)
                var open: [any EntryWriter] = []
                for step in 0..<200 {
                    try await crowd(store, step, &open, &generator, run)
                    let used = store.statistics.bytesUsed
                    run.check(used <= capacity, "step \(step): \(used) bytes used of \(capacity)")
                    if let held = subject.heldBytes?() {
                        run.check(held <= capacity, "step \(step): \(held) bytes held of \(capacity)")
                    }
                }
                run.check(store.statistics.entriesEvicted > 0, "nothing was counted as evicted")
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
                run.check(bytes > 0 && bytes <= capacity / 2, "\(bytes) bytes are pinned of \(capacity)")
                for number in 0..<12 {
                    let entry = try await store.put("k\(number)", large)
                    run.equal(try await store.get("k\(number)"), [entry], "what was written last")
                }
                for entry in pinned {
                    let there = try await store.entries(for: entry.key, now: .at(0))
                    run.equal(there.first?.version, entry.version, "a pinned entry")
                    run.equal(there.first?.isPinned, true, "its pin")
                    run.equal(try await store.wholeBody(of: entry), large, "its body")
                }
                guard let first = pinned.first else { return }
                run.check(try await store.setPinned(false, first), "a pin was not released")
                run.equal(
                    try await store.entries(for: first.key, now: .at(0)).first?.isPinned ?? false,
                    false,
                    "its pin after the release"
                )
                for number in 0..<10 { try await store.put("m\(number)", large) }
                try await store.purge(.keyPrefix(Array("pin".utf8)), now: .at(1))
                run.check(try await !store.setPinned(true, first), "an entry that is gone was pinned")
                let last = try await store.put("last", large)
                run.check(try await store.setPinned(true, last), "a pin was refused although none is left")
            }
        },
        Law("A pin outlives freshening and replacement") { run in
            try await run.with(capacity: capacity) { store in
                let first = try await store.put("a", [1])
                run.check(try await store.setPinned(true, first), "the pin was refused")
                run.check(try await store.put("a", [2]).isPinned, "the newer version is not pinned")
                guard let entry = try await store.get("a").first else { return run.report("it is gone") }
                let fresh = try await store.replaceDescription(of: entry, with: EntryDescription("n"), now: .at(1))
                run.equal(fresh?.isPinned, true, "the pin after freshening")
                run.equal(try await store.get("a").first?.isPinned, true, "the pin in a look-up")
            }
        },
        Law("An entry that cannot fit is refused, at once where its length is known") { run in
            try await run.with(capacity: capacity) { store in
                let kept = try await store.put("b", [7])
                for length in [capacity, .max] {
                    await run.throwing(.tooLarge, "a write of \(length) bytes") {
                        _ = try await store.writer("a", expecting: length)
                    }
                }
                let writer = try await store.writer("a", expecting: -1)
                let part = ByteChunk([UInt8](repeating: 1, count: 100_000))
                await run.throwing(.tooLarge, "a body that grows past the capacity") {
                    for _ in 0...(capacity / part.count) { try await writer.append(part) }
                }
                await run.throwing(.abandoned, "its commit") { try await writer.commit(nil, now: .at(0)) }
                run.equal(try await store.get("a"), [], "its key")
                run.equal(try await store.get("b"), [kept], "another key")
                let metadata = EntryDescription(metadata: ByteChunk([UInt8](repeating: 1, count: 2 * capacity)))
                await run.throwing(.tooLarge, "a description larger than the store") {
                    _ = try await store.writer("a", metadata)
                }
                run.equal(try await store.get("b"), [kept], "another key afterwards")
            }
        },
        Law("Abandoned bodies make room again without driving anything out") { run in
            try await run.with(capacity: capacity) { store in
                let kept = try await store.put("kept", [7])
                for number in 0..<30 {
                    let writer = try await store.writer("k\(number)")
                    try await writer.append(ByteChunk(large))
                    writer.abandon()
                }
                run.equal(try await store.get("kept"), [kept], "an entry that was there")
                let entry = try await store.put("large", large)
                run.equal(try await store.get("large"), [entry], "a large entry afterwards")
                run.equal(store.statistics.entriesWritten, 2, "entries written")
                run.equal(store.statistics.bytesWritten, large.count + 1, "bytes written")
            }
        },
    ]

    /// One random step of many that want more space than there is.
    private static func crowd(
        _ store: any CacheStore,
        _ step: Int,
        _ open: inout [any EntryWriter],
        _ generator: inout SeededGenerator,
        _ run: LawRun
    ) async throws {
        let key = "k\(Int.random(in: 0..<20, using: &generator))"
        switch Int.random(in: 0..<8, using: &generator) {
        case 0...2:
            let size = Int.random(in: 0...600_000, using: &generator)
            let variant = "\(step % 3)"
            if let entry = try? await store.put(key, variant: variant, [UInt8](repeating: 1, count: size)) {
                let there = try await store.get(key).first { $0.variant == entry.variant }
                run.equal(there, entry, "step \(step): what was just written")
            }
        case 3:
            let description = EntryDescription(String(repeating: "m", count: step))
            if let writer = try? await store.writer(key, variant: "w", description) { open.append(writer) }
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
        // What is being written holds room; a store full of it could evict nothing more.
        if open.count > 4 { open.removeFirst().abandon() }
    }
}
