// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

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
                run.check(try await store.setPinned(true, pinned), "the pin was refused")
                try await store.replaceDescription(of: fresh, with: EntryDescription("4"), now: .at(9))
                return try await store.get("a")
            } then: { store, kept in
                let found = try await store.get("a")
                run.equal(found, kept, "the entries")
                for entry in found {
                    guard let number = Int(entry.description.text) else { continue }
                    run.equal(try await store.wholeBody(of: entry), bodies[number], "body \(number)")
                }
                let new = try await store.put("a", variant: "new", [1])
                run.check(
                    found.allSatisfy { $0.version < new.version },
                    "a new version is not higher than the old ones"
                )
                let replaced = try await store.put("a", variant: "0", [1])
                run.check(replaced.isPinned, "the pin does not outlive a replacement after the restart")
            }
        },
        Law("What was removed, invalidated or purged stays away after a restart", isOfRestarts: true) { run in
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
                // An older version must not come back in the place of one that is gone.
                let newer = try await store.put("replaced", variant: "1", [3])
                try await store.remove(newer)
                let again = try await store.put("invalid", variant: "1", [4], EntryDescription("m", tags: ["tagged"]))
                return (try await store.get("kept"), try await store.get("replaced"), again)
            } then: { store, kept in
                for key in ["removed", "tagged", "prefix/1", "matching"] {
                    run.equal(try await store.get(key), [], key)
                }
                run.equal(try await store.get("kept"), kept.0, "what was spared")
                run.equal(try await store.get("replaced"), kept.1, "after its newer version was removed")
                run.equal(try await store.get("invalid"), [kept.2], "what was written after the invalidation")
                run.equal(try await store.listed(limit: 3).count, kept.0.count + kept.1.count + 1, "entries listed")
            }
        },
        Law("A purge of all survives a restart", isOfRestarts: true) { run in
            try await run.withRestart { store in
                for number in 0..<20 { try await store.put("k\(number)", [UInt8](repeating: 1, count: number * 9_000)) }
                try await store.purge(.all, now: .at(1))
                return try await store.put("new", [1])
            } then: { store, new in
                run.equal(try await store.listed(limit: 100).map(\.entry), [new], "the entries")
                run.equal(store.statistics.entryCount, 1, "entries held")
            }
        },
        Law("The secret survives a restart", isOfRestarts: true) { run in
            try await run.withRestart { store in
                try await store.put("a", [1])
                return store.secret
            } then: { store, secret in
                run.equal(store.secret, secret, "the secret")
            }
        },
        Law("What was being written when the store closed leaves nothing", isOfRestarts: true) { run in
            try await run.withRestart { store in
                let writer = try await store.writer("a")
                try await writer.append(ByteChunk([UInt8](repeating: 1, count: 300_000)))
                let kept = try await store.put("b", [1])
                await store.close()
                await run.throwing(.closed, "the commit") { try await writer.commit(nil, now: .at(1)) }
                return kept
            } then: { store, kept in
                run.equal(try await store.get("a"), [], "its key")
                run.equal(try await store.listed(limit: 100).map(\.entry), [kept], "the entries")
            }
        },
    ]
}
