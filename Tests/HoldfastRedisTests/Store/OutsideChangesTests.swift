// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    import HoldfastStorage
    import HoldfastTestKit
    import HoldfastTesting
    import Testing

    @testable import HoldfastRedis

    @Suite("What other processes change behind a memory in front", .timeLimit(.minutes(5)))
    struct OutsideChangesTests {
        private let tier = TieredStore(
            upper: MemoryStore(capacity: 4 << 20),
            over: FleetStore(MemoryStore(capacity: 4 << 20), leasing: nil),
            rule: .firstHit
        )

        /// Puts an entry and reads it until memory answers, which it does only if nothing suspends it.
        private func promote(_ key: String) async throws {
            let entry = try await tier.put(key, [1])
            while tier.peek(StoreKey(key), now: .at(0)) == nil {
                _ = try await tier.wholeBody(of: entry)
                await Task.yield()
            }
        }

        private func report(_ text: String, to changes: OutsideChanges, times: Int = 1) {
            for _ in 0..<times { changes.receive(.message(channel: [], payload: Array("other\(text)".utf8))) }
        }

        @Test(
            "However many reports arrive at once, what they name is gone and memory is used again",
            arguments: ["k", "p"],
            [1, 63, 200, 3_000]
        )
        func floods(kind: String, count: Int) async throws {
            let changes = OutsideChanges(tier, origin: "mine!")
            try await tier.put("a", [1])
            #expect(tier.peek(StoreKey("a"), now: .at(0)) == nil, "nobody has told yet that reports arrive")
            changes.receive(.listening)
            let keys = (0..<min(count, 200)).map { "key \($0)" }
            for key in keys + ["other"] { try await promote(key) }
            for number in 0..<count { report("\(kind)key \(number)", to: changes) }
            #expect(changes.heard == count)
            // Trusted again: each report's suspension has ended, and what it named was forgotten before.
            try await promote("later")
            for key in keys { #expect(tier.peek(StoreKey(key), now: .at(0)) == nil, "\(key)") }
            // Each key is used again, so every change that was begun for it has ended.
            for key in keys { try await promote(key) }
        }

        @Test("A change of everything empties memory; one's own changes and reports without a sender do not")
        func everything() async throws {
            let changes = OutsideChanges(tier, origin: "mine!")
            changes.receive(.listening)
            try await promote("a")
            changes.receive(.message(channel: [], payload: Array("mine!ka".utf8)))
            changes.receive(.message(channel: [], payload: Array("ka".utf8)))
            #expect(tier.peek(StoreKey("a"), now: .at(0)) != nil)
            report("*", to: changes, times: 100)
            try await promote("b")
            #expect(tier.peek(StoreKey("a"), now: .at(0)) == nil)
            changes.receive(.lost)
            #expect(tier.peek(StoreKey("b"), now: .at(0)) == nil)
            changes.receive(.listening)
            try await promote("c")
            #expect(tier.peek(StoreKey("b"), now: .at(0)) == nil, "it may have changed while nobody listened")
        }
    }
#endif
