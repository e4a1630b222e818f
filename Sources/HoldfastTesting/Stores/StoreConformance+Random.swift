// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension StoreConformance {
    static let randomLaws = [
        Law("Random operations give what a dictionary gives") { run in
            for seed in 0..<2 as Range<UInt64> {
                try await StoreConformanceModel(run, seed: run.seed &* 1_000 &+ seed).run()
            }
        },
        Law("Many tasks at once see no torn entry, and the capacity holds") { run in
            try await run.with(capacity: 4 << 20) { store, subject in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<8 as Range<UInt64> {
                        group.addTask { try await work(store, seed: run.seed &* 100 &+ task, run) }
                    }
                    try await group.waitForAll()
                }
                let used = subject.heldBytes?() ?? store.statistics.bytesUsed
                run.check(used <= 4 << 20, "\(used) bytes are held of \(4 << 20)")
            }
        },
    ]

    /// A body by which its entry can be told apart from every other one.
    private static func body(_ number: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: number)
        let lengths = [0, 100, 30_000, 70_000, 200_000]
        return generator.bytes(lengths[Int(number % 5)])
    }

    private static func work(_ store: any CacheStore, seed: UInt64, _ run: LawRun) async throws {
        var generator = SeededGenerator(seed: seed)
        for step in 0..<50 {
            let key = "key\(Int.random(in: 0..<4, using: &generator))"
            switch Int.random(in: 0..<11, using: &generator) {
            case 0...3:
                let number = seed &* 1_000 &+ UInt64(step)
                let code = await run.code { try await write(store, key, step: step, number: number, run) }
                run.check([nil, "superseded", "no-space", "abandoned"].contains(code), "a write gave \(code ?? "")")
            case 4...6:
                for entry in try await store.get(key) { await check(store, entry, run) }
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
                run.check([nil, "no-space"].contains(code), "a change gave \(code ?? "")")
            }
            let statistics = store.statistics
            run.check(statistics.bytesUsed <= statistics.capacity, "\(statistics.bytesUsed) bytes are used")
        }
    }

    private static func check(_ store: any CacheStore, _ entry: StoredEntry, _ run: LawRun) async {
        do throws(StoreError) {
            let number = UInt64(entry.description.text) ?? 0
            let bytes = try await store.wholeBody(of: entry)
            run.check(bytes == body(number), "the body of \(number) is torn, or another entry's")
        } catch {
            run.check(error.code == .superseded, "a read gave \(error.code)")
        }
    }

    private static func write(
        _ store: any CacheStore,
        _ key: String,
        step: Int,
        number: UInt64,
        _ run: LawRun
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
            description,
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
                run.check(try await reader.value == bytes, "a follower read other bytes")
            }
        } catch {
            writer.abandon()
            _ = try? await reader.value
            throw error
        }
        _ = try? await reader.value
    }
}
