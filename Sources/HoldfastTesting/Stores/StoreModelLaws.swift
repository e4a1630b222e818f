// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let randomLaws = [
        Law("Random operations have the same results as with a dictionary") { run in
            for seed in 0..<2 as Range<UInt64> {
                try await StoreConformanceModel(run, seed: run.seed &* 1_000 &+ seed).run()
            }
        },
        Law("Many concurrent tasks see no torn entry, and the capacity is kept") { run in
            try await run.with(capacity: 4 << 20) { store, subject in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<8 as Range<UInt64> {
                        group.addTask { try await work(store, seed: run.seed &* 100 &+ task, run: run) }
                    }
                    try await group.waitForAll()
                }
                let used = subject.heldBytes?() ?? store.statistics.bytesUsed
                run.check(used <= 4 << 20, or: "\(used) of \(4 << 20) bytes are held")
            }
        },
    ]

    /// A body that distinguishes its entry from every other one.
    private static func body(_ number: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: number)
        let lengths = [0, 100, 30_000, 70_000, 200_000]
        return generator.bytes(lengths[Int(number % 5)])
    }

    private static func work(_ store: any CacheStore, seed: UInt64, run: LawRun) async throws {
        var generator = SeededGenerator(seed: seed)
        for step in 0..<50 {
            let key = "key\(Int.random(in: 0..<4, using: &generator))"
            switch Int.random(in: 0..<11, using: &generator) {
            case 0...3:
                let number = seed &* 1_000 &+ UInt64(step)
                let code = await run.code { try await write(store, key: key, step: step, number: number, run: run) }
                run.check(
                    [nil, "superseded", "no-space", "abandoned"].contains(code),
                    or: "a write gave \(code ?? "")"
                )
            case 4...6:
                for entry in try await store.get(key) { await check(store, entry: entry, run: run) }
            case 7:
                try await store.invalidate(StoreKey(key))
            case 8:
                try await store.purge(.matching { $0.version.number % 7 == 0 }, now: .at(0))
            case 9:
                try await store.purge(.tag("t\(step % 4)"), now: .at(0))
            default:
                guard let entry = try await store.get(key).first else { continue }
                let code = await run.code {
                    try await store.setPinned(step.isMultiple(of: 2), entry)
                    try await store.replaceDescription(of: entry, with: entry.description, now: .at(0))
                }
                run.check([nil, "no-space"].contains(code), or: "a change gave \(code ?? "")")
            }
            let statistics = store.statistics
            run.check(statistics.bytesUsed <= statistics.capacity, or: "\(statistics.bytesUsed) bytes are used")
        }
    }

    private static func check(_ store: any CacheStore, entry: StoredEntry, run: LawRun) async {
        do throws(StoreError) {
            let number = UInt64(entry.description.text) ?? 0
            let bytes = try await store.wholeBody(of: entry)
            run.check(bytes == body(number), or: "the body of \(number) is torn, or another entry's")
        } catch {
            run.check(error.code == .superseded, or: "a read gave \(error.code)")
        }
    }

    private static func write(
        _ store: any CacheStore,
        key: String,
        step: Int,
        number: UInt64,
        run: LawRun
    ) async throws {
        let bytes = body(number)
        let description = EntryDescription("\(number)", tags: ["t\(step % 4)"])
        if step.isMultiple(of: 4) {
            try await store.put(
                StoreKey(key),
                variant: StoreKey("\(step % 3)"),
                description: description,
                body: ByteChunk(bytes),
                now: .at(step)
            )
            return
        }
        let writer = try await store.writer(
            key,
            variant: "\(step % 3)",
            description: description,
            expecting: bytes.count,
            now: .at(step)
        )
        let follower = writer.follow()
        let reader = Task { try await follower.whole() }
        let half = bytes.count / 2
        do {
            try await writer.append(ByteChunk(bytes)[0..<half])
            try await writer.append(ByteChunk(bytes)[half..<bytes.count])
            if step.isMultiple(of: 7) {
                writer.abandon()
            } else {
                try await writer.commit(nil, now: .at(step))
                run.check(try await reader.value == bytes, or: "a follower read other bytes")
            }
        } catch {
            writer.abandon()
            _ = try? await reader.value
            throw error
        }
        _ = try? await reader.value
    }
}

/// Random operations on a store and on a dictionary, which must agree after each of them.
struct StoreConformanceModel {
    private struct Known {
        var entry: StoredEntry
        let body: [UInt8]
    }

    private let run: LawRun
    private let seed: UInt64

    init(_ run: LawRun, seed: UInt64) {
        self.run = run
        self.seed = seed
    }

    /// Two hundred steps on a store that is large enough to evict nothing.
    func run() async throws {
        let run = run
        try await run.with(capacity: 64 << 20) { first, subject in
            var store = first
            var generator = SeededGenerator(seed: seed)
            // The variants of each key, newest first.
            var model: [String: [Known]] = [:]
            for step in 0..<200 {
                let key = "key\(Int.random(in: 0..<6, using: &generator))"
                let point = "step \(step) of \(seed)"
                if step % 50 == 49, let reopen = subject.reopen {
                    await store.close()
                    store = try await reopen()
                } else {
                    try await change(store, key: key, step: step, model: &model, generator: &generator)
                }
                let expected = (model[key] ?? []).map(\.entry)
                run.equal(try await store.get(key, now: .at(step)), to: expected, for: "\(point): \(key)")
                if let known = model[key]?.randomElement(using: &generator) {
                    run.equal(try await store.wholeBody(of: known.entry), to: known.body, for: "\(point): a body")
                }
                if step % 10 == 0 {
                    let listed = try await store.listed(limit: 1 + step % 7).map(\.entry)
                    run.equal(listed.count, to: Set(listed).count, for: "\(point): entries listed twice")
                    let all = model.values.flatMap { $0.map(\.entry) }
                    run.equal(Set(listed), to: Set(all), for: "\(point): the list")
                }
            }
            await store.close()
        }
    }

    private func change(
        _ store: any CacheStore,
        key: String,
        step: Int,
        model: inout [String: [Known]],
        generator: inout SeededGenerator
    ) async throws {
        let place = model[key]?.indices.randomElement(using: &generator)
        let known = place.flatMap { model[key]?[$0] }
        switch Int.random(in: 0..<12, using: &generator) {
        case 0...4:
            let body = generator.bytes([0, 10, 3_000, 70_000].randomElement(using: &generator) ?? 0)
            let variant = "\(Int.random(in: 0..<4, using: &generator))"
            let tags: Set<String> = Bool.random(using: &generator) ? ["t\(step % 3)"] : []
            let description = EntryDescription("\(step)", tags: tags)
            let entry = try await store.put(key, variant: variant, body, description, now: .at(step))
            model[key, default: []].removeAll { $0.entry.variant == entry.variant }
            model[key, default: []].insert(Known(entry: entry, body: body), at: 0)
        case 5:
            guard let known else { return }
            let description = EntryDescription("fresh \(step)", tags: known.entry.description.tags)
            let entry = try await store.replaceDescription(of: known.entry, with: description, now: .at(step))
            guard let entry else { return run.report("step \(step) of \(seed): an entry is said to be gone") }
            model[key]?.removeAll { $0.entry.version == known.entry.version }
            model[key]?.insert(Known(entry: entry, body: known.body), at: 0)
        case 6:
            guard let known else { return }
            try await store.remove(known.entry)
            model[key]?.removeAll { $0.entry.version == known.entry.version }
        case 7:
            try await store.invalidate(StoreKey(key))
            model[key] = []
        case 8:
            let tag = "t\(step % 3)"
            let taken = remove(from: &model) { $0.description.tags.contains(tag) }
            let count = try await store.purge(.tag(tag), now: .at(step))
            run.check(count == nil || count == taken, or: "step \(step) of \(seed): \(count ?? 0) purged, not \(taken)")
        case 9:
            let variant = StoreKey("\(step % 4)")
            let taken = remove(from: &model) { $0.key == StoreKey(key) && $0.variant == variant }
            let selection = PurgeSelection.matching { $0.key == StoreKey(key) && $0.variant == variant }
            let count = try await store.purge(selection, now: .at(step))
            run.check(count == nil || count == taken, or: "step \(step) of \(seed): \(count ?? 0) purged, not \(taken)")
        default:
            guard let place, let known else { return }
            let pins = Bool.random(using: &generator)
            run.check(try await store.setPinned(pins, known.entry), or: "step \(step) of \(seed): a pin was refused")
            let pinned = try await store.get(key).first { $0.version == known.entry.version }
            run.equal(pinned?.isPinned, to: pins, for: "step \(step) of \(seed): the pin")
            if let pinned { model[key]?[place].entry = pinned }
        }
    }

    private func remove(from model: inout [String: [Known]], where condition: (StoredEntry) -> Bool) -> Int {
        var count = 0
        for key in model.keys {
            let before = model[key]?.count ?? 0
            model[key]?.removeAll { condition($0.entry) }
            count += before - (model[key]?.count ?? 0)
        }
        return count
    }
}
