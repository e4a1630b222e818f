// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import Synchronization

extension StoreConformance {
    /// Every way in which "p/1" to "p/3", and a "red" entry, become invalid, and the keys that each spares.
    private static let purges: [(name: String, spared: Set<String>, run: Purge)] = [
        ("a purge of all", [], { try await $0.purge(.all, now: .at(1)) }),
        ("a purge by tag", ["p/2", "q/2"], { try await $0.purge(.tag("red"), now: .at(1)) }),
        ("a purge by prefix", ["q/1", "q/2"], { try await $0.purge(.keyPrefix(Array("p/".utf8)), now: .at(1)) }),
        ("a purge by the empty prefix", [], { try await $0.purge(.keyPrefix([]), now: .at(1)) }),
        (
            "a purge by predicate", ["p/2", "q/2"],
            { try await $0.purge(.matching { $0.description.text == "one" }, now: .at(1)) }
        ),
        ("a purge by a tag of other bytes", keys, { try await $0.purge(.tag("cafe\u{301}"), now: .at(1)) }),
    ]

    /// Every way in which "p/1" becomes invalid.
    private static var invalidations: [(String, Purge)] {
        let invalidation: Purge = { store in
            try await store.invalidate(StoreKey("p/1"))
            return nil
        }
        return purges.filter { !$0.spared.contains("p/1") }.map { ($0.name, $0.run) }
            + [("an invalidation", invalidation)]
    }

    private typealias Purge = @Sendable (any CacheStore) async throws -> Int?
    private static let keys: Set<String> = ["p/1", "p/2", "q/1", "q/2"]

    /// Four keys; those that end with 1 are "one" and red, and have a tag whose é is one code point.
    private static func fill(_ store: any CacheStore) async throws {
        for prefix in ["p", "q"] {
            try await store.put("\(prefix)/1", [1], EntryDescription("one", tags: ["red", "caf\u{e9}"]))
            try await store.put("\(prefix)/2", [1, 2], EntryDescription("two", tags: ["blue"]))
        }
    }

    static let purgeLaws = [
        Law("An invalidation removes all variants of its key, and nothing else") { run in
            try await run.with { store in
                for variant in ["1", "2", "3"] { try await store.put("a", variant: variant, [1]) }
                let other = try await store.put("ab", [2])
                try await store.invalidate(StoreKey("a"))
                run.equal(try await store.get("a"), to: [], for: "the key")
                run.equal(try await store.get("ab"), to: [other], for: "another key")
                run.equal(store.statistics.entriesRemoved, to: 3, for: "entries removed")
                let again = try await store.put("a", [3])
                run.equal(try await store.get("a"), to: [again], for: "the entry written afterward")
            }
        },
        Law("A purge removes what its selection names, returns how many, and spares entries written afterward") { run in
            for purge in purges {
                try await run.with { store in
                    try await fill(store)
                    for key in keys.sorted() {
                        for entry in try await store.get(key) { _ = try await store.wholeBody(of: entry) }
                    }
                    if let count = try await purge.run(store) {
                        run.equal(count, to: 4 - purge.spared.count, for: "the count of \(purge.name)")
                        run.equal(
                            store.statistics.entryCount,
                            to: purge.spared.count,
                            for: "entries after \(purge.name)"
                        )
                    }
                    for key in keys.sorted() {
                        let isThere = try await !store.get(key).isEmpty
                        run.equal(isThere, to: purge.spared.contains(key), for: "\(key) after \(purge.name)")
                    }
                    let listed = Set(try await store.listed(limit: 3).map { $0.entry.key })
                    run.equal(listed, to: Set(purge.spared.map { StoreKey($0) }), for: "the list after \(purge.name)")
                    let new = try await store.put("p/1", [5], EntryDescription("one", tags: ["red"]))
                    run.equal(try await store.get("p/1"), to: [new], for: "the entry written after \(purge.name)")
                }
            }
        },
        Law("A purge by tag removes single variants of a key, including pinned ones") { run in
            try await run.with { store in
                let pinned = try await store.put("a", variant: "1", [1], EntryDescription("m", tags: ["red"]))
                let left = try await store.put("a", variant: "2", [2], EntryDescription("m", tags: ["blue"]))
                run.check(try await store.setPinned(true, pinned), or: "the pin was refused")
                let count = try await store.purge(.tag("red"), now: .at(1))
                run.check(count == nil || count == 1, or: "\(count ?? 0) entries were counted instead of 1")
                run.equal(try await store.get("a"), to: [left], for: "the lookup")
            }
        },
        Law("A purge by tag uses an entry's current tags") { run in
            try await run.with { store in
                let old = try await store.put("a", [1], EntryDescription("m", tags: ["red"]))
                let new = try await store.replaceDescription(
                    of: old,
                    with: EntryDescription("n", tags: ["blue"]),
                    now: .at(1)
                )
                try await store.purge(.tag("red"), now: .at(2))
                run.equal(try await store.get("a"), to: new.map { [$0] } ?? [], for: "after a purge by its old tag")
                try await store.purge(.tag("blue"), now: .at(3))
                run.equal(try await store.get("a"), to: [], for: "after a purge by its new tag")
            }
        },
        Law("An entry being written when its key was invalidated does not appear") { run in
            for (name, attack) in invalidations {
                try await run.with { store in
                    let description = EntryDescription("one", tags: ["red"])
                    let writer = try await store.writer("p/1", description: description)
                    try await writer.append(ByteChunk([1, 2, 3]))
                    let body = writer.follow()
                    _ = try await attack(store)
                    await run.throwing(.superseded, what: "the commit after \(name)") {
                        try await writer.commit(nil, now: .at(2))
                    }
                    run.equal(try await store.get("p/1"), to: [], for: "the lookup after \(name)")
                    run.equal(try await body.whole(), to: [1, 2, 3], for: "the followers' bytes after \(name)")
                    let later = try await store.put("p/1", [4], description, now: .at(3))
                    run.equal(try await store.get("p/1"), to: [later], for: "the entry begun after \(name)")
                }
            }
        },
        Law("A purge or an invalidation is completed although the task that makes it is cancelled") { run in
            for (name, attack) in invalidations {
                try await run.with { store in
                    try await fill(store)
                    let task = Task {
                        withUnsafeCurrentTask { $0?.cancel() }
                        _ = try await attack(store)
                    }
                    // The call may say that it was cancelled, if it is completed before the next one.
                    _ = await task.result
                    run.equal(try await store.get("p/1"), to: [], for: "the lookup after \(name)")
                }
            }
        },
        Law("A writer can commit although other entries were invalidated") { run in
            try await run.with { store in
                let writer = try await store.writer("a", description: EntryDescription("m", tags: ["red"]))
                try await store.invalidate(StoreKey("b"))
                try await store.purge(.tag("blue"), now: .at(1))
                try await store.purge(.keyPrefix([0]), now: .at(1))
                try await store.purge(.matching { _ in false }, now: .at(1))
                let entry = try await writer.commit(nil, now: .at(2))
                run.equal(try await store.get("a"), to: [entry], for: "the lookup")
            }
        },
        Law("A predicate is called with every entry as it is, including those being written") { run in
            try await run.with { store in
                try await fill(store)
                let writer = try await store.writer("w", description: EntryDescription("first"))
                try await writer.append(ByteChunk([1, 2]))
                let shown = Mutex<[StoredEntry]>([])
                try await store.purge(
                    .matching { entry in
                        shown.withLock { $0.append(entry) }
                        return false
                    },
                    now: .at(1)
                )
                let seen = shown.withLock { $0 }
                for key in keys.sorted() {
                    let entries = try await store.get(key)
                    run.equal(
                        Set(seen.filter { $0.key == StoreKey(key) }),
                        to: Set(entries),
                        for: "the entry passed for \(key)"
                    )
                }
                let written = seen.first { $0.key == StoreKey("w") }
                run.equal(written?.version, to: .beingWritten, for: "the version of the one being written")
                run.equal(written?.bodyLength, to: 0, for: "its body length")
                run.equal(written?.description.text, to: "first", for: "its description")
                try await writer.commit(nil, now: .at(1))
            }
        },
        Law("An invalidation is atomic for concurrent lookups") { run in
            try await run.with { store in
                for round in 0..<20 {
                    let key = "k\(round)"
                    for variant in 0..<8 { try await store.put(key, variant: "\(variant)", [UInt8(round)]) }
                    // It begins while all others look, and they look until it is over, so that some of them look meanwhile.
                    let looking = CountWatch()
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<3 {
                            group.addTask {
                                looking.increment()
                                var timesGone = 0
                                for number in 1...500 where timesGone < 5 {
                                    // A store that never suspends would keep a thread that others need.
                                    if number.isMultiple(of: 16) { await Task.yield() }
                                    guard let seen = try? await store.get(key) else { continue }
                                    run.check([0, 8].contains(seen.count), or: "\(seen.count) of 8 variants are there")
                                    if timesGone > 0 { run.check(seen.isEmpty, or: "entries came back") }
                                    if seen.isEmpty { timesGone += 1 }
                                    if let entry = seen.first { _ = try? await store.wholeBody(of: entry) }
                                }
                            }
                        }
                        group.addTask {
                            try? await looking.wait(for: 3)
                            if round.isMultiple(of: 2) {
                                try? await store.invalidate(StoreKey(key))
                            } else {
                                _ = try? await store.purge(.keyPrefix(Array(key.utf8)), now: .at(1))
                            }
                        }
                    }
                    run.equal(try await store.get(key), to: [], for: "afterwards")
                }
            }
        },
    ]
}

extension StoreConformance {
    static let restartLaws = [
        Law("Entries survive a restart, with bodies, order, times and pins", isOfRestarts: true) { run in
            var generator = SeededGenerator(seed: run.seed)
            let bodies = [0, 1, 4_096, 65_537, 700_000].map { generator.bytes($0) }
            try await run.withRestart { store in
                for (number, body) in bodies.enumerated() {
                    let description = EntryDescription("\(number)", uselessAfter: .at(number * 1_000), tags: ["t"])
                    try await store.put("a", variant: "\(number)", body, description, now: .at(number))
                }
                guard let pinned = try await store.get("a").last, let fresh = try await store.get("a").first else {
                    return [StoredEntry]()
                }
                run.check(try await store.setPinned(true, pinned), or: "the pin was refused")
                try await store.replaceDescription(of: fresh, with: EntryDescription("4"), now: .at(9))
                return try await store.get("a")
            } then: { store, kept in
                let found = try await store.get("a")
                run.equal(found, to: kept, for: "the entries")
                for entry in found {
                    guard let number = Int(entry.description.text) else { continue }
                    run.equal(try await store.wholeBody(of: entry), to: bodies[number], for: "body \(number)")
                }
                let new = try await store.put("a", variant: "new", [1])
                run.check(
                    found.allSatisfy { $0.version < new.version },
                    or: "a new version is not higher than the old ones"
                )
                let replaced = try await store.put("a", variant: "0", [1])
                run.check(replaced.isPinned, or: "the pin does not outlive a replacement after the restart")
            }
        },
        Law("Removed, invalidated and purged entries stay away after a restart", isOfRestarts: true) { run in
            try await run.withRestart { store in
                for key in ["removed", "invalid", "tagged", "prefix/1", "matching", "replaced", "kept"] {
                    try await store.put(key, variant: "1", [1], EntryDescription(key, tags: [key]))
                    try await store.put(key, variant: "2", [2, 2], EntryDescription(key, tags: [key]))
                }
                for entry in try await store.get("removed") { try await store.remove(entry) }
                try await store.invalidate(StoreKey("invalid"))
                try await store.purge(.tag("tagged"), now: .at(1))
                try await store.purge(.keyPrefix(Array("prefix/".utf8)), now: .at(1))
                try await store.purge(.matching { $0.description.text == "matching" }, now: .at(1))
                // An older version must not return in place of one that is gone.
                let newer = try await store.put("replaced", variant: "1", [3])
                try await store.remove(newer)
                let again = try await store.put("invalid", variant: "1", [4], EntryDescription("m", tags: ["tagged"]))
                return (try await store.get("kept"), try await store.get("replaced"), again)
            } then: { store, kept in
                for key in ["removed", "tagged", "prefix/1", "matching"] {
                    run.equal(try await store.get(key), to: [], for: key)
                }
                run.equal(try await store.get("kept"), to: kept.0, for: "what was spared")
                run.equal(try await store.get("replaced"), to: kept.1, for: "after its newer version was removed")
                run.equal(try await store.get("invalid"), to: [kept.2], for: "the entry written after the invalidation")
                run.equal(
                    try await store.listed(limit: 3).count,
                    to: kept.0.count + kept.1.count + 1,
                    for: "entries listed"
                )
            }
        },
        Law("A purge of everything survives a restart", isOfRestarts: true) { run in
            try await run.withRestart { store in
                for number in 0..<20 { try await store.put("k\(number)", [UInt8](repeating: 1, count: number * 9_000)) }
                try await store.purge(.all, now: .at(1))
                return try await store.put("new", [1])
            } then: { store, new in
                run.equal(try await store.listed(limit: 100).map(\.entry), to: [new], for: "the entries")
                run.equal(store.statistics.entryCount, to: 1, for: "entries held")
            }
        },
        Law("The secret survives a restart", isOfRestarts: true) { run in
            try await run.withRestart { store in
                try await store.put("a", [1])
                return store.secret
            } then: { store, secret in
                run.equal(store.secret, to: secret, for: "the secret")
            }
        },
        Law("An entry being written when the store closed leaves nothing", isOfRestarts: true) { run in
            try await run.withRestart { store in
                let writer = try await store.writer("a")
                try await writer.append(ByteChunk([UInt8](repeating: 1, count: 300_000)))
                let kept = try await store.put("b", [1])
                await store.close()
                await run.throwing(.closed, what: "the commit") { try await writer.commit(nil, now: .at(1)) }
                return kept
            } then: { store, kept in
                run.equal(try await store.get("a"), to: [], for: "its key")
                run.equal(try await store.listed(limit: 100).map(\.entry), to: [kept], for: "the entries")
            }
        },
    ]
}
