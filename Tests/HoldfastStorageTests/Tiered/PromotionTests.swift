// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

@Suite("When entries are promoted, and what is remembered for that")
struct PromotionTests {
    @Test(
        "A rule depends on the hits within the window and the length of the body",
        arguments: [
            (PromotionRule.firstHit, 0, 0, true), (.firstHit, 1 << 16, 0, true), (.firstHit, 1 << 16 + 1, 3, false),
            (.secondHit, 10, 0, false), (.secondHit, 10, 1, true), (.secondHit, 10, 3, true),
            (PromotionRule(hits: 3), 10, 1, false), (PromotionRule(hits: 3), 10, 2, true),
            (PromotionRule(hits: 1, share: 1), 1 << 20, 0, true), (PromotionRule(hits: 1, share: 4), 1 << 19, 0, false),
        ]
    )
    func rule(rule: PromotionRule, length: Int, earlier: Int, promotes: Bool) {
        #expect(rule.promotes(bodyLength: length, earlierHits: earlier, capacity: 1 << 20) == promotes)
    }

    @Test("Numbers out of range are clamped")
    func range() {
        #expect(PromotionRule(hits: 0, window: 0, share: 0) == PromotionRule(hits: 1, window: 1, share: 1))
        #expect(PromotionRule(hits: 9, window: .max) == PromotionRule(hits: 4, window: 1 << 20))
        #expect(PromotionRule.firstHit.maximumBody(capacity: -5) == 0)
    }

    @Test("A sketch counts to three within the window and forgets after two", arguments: [1, 2, 3] as [UInt64])
    func sketch(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var sketch = HitSketch(window: 100)
        let hash = generator.next()
        for expected in [0, 1, 2, 3, 3] {
            let earlier = sketch.note(hash)
            #expect(earlier == expected)
        }
        var others = 0
        for _ in 0..<250 { others += sketch.note(generator.next()) }
        let later = sketch.note(hash)
        #expect(later == 0)
        #expect(others <= 1, "keys are taken for others, seed \(seed)")
    }

    @Test("Most keys that return within the window are recognized", arguments: [1, 2, 3] as [UInt64])
    func recognition(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var sketch = HitSketch(window: 1_000)
        let keys = (0..<500).map { _ in generator.next() }
        for key in keys { _ = sketch.note(key) }
        var known = 0
        for key in keys where sketch.note(key) > 0 { known += 1 }
        #expect(known > 360, "\(known) of 500, seed \(seed)")
    }

    @Test("The coherence tracker knows which keys are changing and which promotions are outdated")
    func coherence() {
        var coherence = TierCoherence(maximumBytes: 100)
        let (a, b) = (StoreKey("a"), StoreKey("b"))
        #expect(coherence.trusts(a) && coherence.isIdle)
        let begun = [(a, 60), (a, 1), (b, 41), (b, 40)].map { coherence.beginPromotion(of: $0, bytes: $1) }
        // One at a time for each key, and no more bytes than all may hold.
        #expect(begun == [true, false, false, true] && coherence.bytes == 100)
        coherence.beginChange(of: a)
        coherence.beginChange(of: a)
        #expect(!coherence.trusts(a) && coherence.trusts(b) && !coherence.isCurrent(a) && coherence.isCurrent(b))
        coherence.endChange(of: a)
        #expect(!coherence.trusts(a), "two changes were begun")
        coherence.endChange(of: a)
        #expect(coherence.trusts(a) && !coherence.isCurrent(a))
        coherence.endPromotion(of: a)
        #expect(coherence.bytes == 40 && !coherence.isIdle)
        coherence.beginChange(of: nil)
        let beginsMeanwhile = coherence.beginPromotion(of: a, bytes: 0)
        #expect(!coherence.trusts(b) && !coherence.isCurrent(b) && !beginsMeanwhile)
        coherence.endChange(of: nil)
        coherence.endPromotion(of: b)
        #expect(coherence.trusts(b) && coherence.isIdle && coherence.bytes == 0)
    }

    private static let entry = StoredEntry(
        key: StoreKey("k"),
        variant: StoreKey("v"),
        version: StoredEntry.Version(number: 0x0102_0304_0506_0708),
        description: EntryDescription("meta", uselessAfter: .at(77), tags: ["t"]),
        bodyLength: 123_456,
        storedAt: .at(-5),
        isPinned: true,
        needsValidation: true
    )

    private static func upper(_ description: EntryDescription, variant: String = "v") -> StoredEntry {
        StoredEntry(
            key: StoreKey("k"),
            variant: StoreKey(variant),
            version: StoredEntry.Version(number: 1),
            description: description,
            bodyLength: 0,
            storedAt: .at(9)
        )
    }

    @Test("An entry is decoded from its promoted form unchanged")
    func roundTrip() throws {
        let promoted = PromotedEntry(entry: Self.entry, group: 7, generation: 3, index: 1, count: 2, hasBody: true)
        let read = try #require(PromotedEntry(Self.upper(promoted.description)))
        #expect(read.entry == Self.entry)
        #expect(read.group == 7 && read.generation == 3 && read.index == 1 && read.count == 2 && read.hasBody)
    }

    @Test("Bytes that are not a promoted entry decode to nothing, and never trap", arguments: [1, 2, 3] as [UInt64])
    func damage(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let whole = PromotedEntry(entry: Self.entry, group: 7, generation: 3, index: 0, count: 1, hasBody: true)
            .description.metadata.array
        for length in 0..<whole.count {
            #expect(
                (PromotedEntry(Self.upper(EntryDescription(metadata: ByteChunk(Array(whole[..<length]))))) == nil)
                    == (length < 45)
            )
        }
        for _ in 0..<2_000 {
            var bytes = generator.bytes(Int.random(in: 0..<80, using: &generator))
            if !bytes.isEmpty, Bool.random(using: &generator) { bytes[0] = whole[0] }
            _ = PromotedEntry(Self.upper(EntryDescription(metadata: ByteChunk(bytes))))
        }
    }

    @Test("Only a complete group of the current generation is used, the latest first")
    func groups() {
        func variant(_ name: String, group: UInt64, index: Int, count: Int, generation: UInt64 = 1) -> StoredEntry {
            let promoted = PromotedEntry(
                entry: Self.entry,
                group: group,
                generation: generation,
                index: index,
                count: count,
                hasBody: false
            )
            return Self.upper(promoted.description, variant: name)
        }
        let (first, second) = (variant("x", group: 2, index: 1, count: 2), variant("y", group: 2, index: 0, count: 2))
        func names(_ upper: [StoredEntry]) -> [StoreKey]? {
            PromotedEntry.group(upper, generation: 1)?.map(\.entry.variant)
        }
        #expect(names([first, second]) == [StoreKey("y"), StoreKey("x")])
        #expect(names([first]) == nil)
        #expect(names([]) == nil)
        #expect(names([first, second, variant("z", group: 1, index: 0, count: 1)]) == [StoreKey("y"), StoreKey("x")])
        #expect(names([first, variant("z", group: 3, index: 0, count: 1)]) == [StoreKey("z")])
        #expect(names([variant("z", group: 3, index: 0, count: 1, generation: 0)]) == nil)
        #expect(names([Self.upper(EntryDescription("foreign"))]) == nil)
    }
}
