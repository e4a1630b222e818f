// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

/// An empty vector file would let every vector test pass, so the groups are counted first.
@Suite struct VectorFileTests {
    @Test func canonicalGroupsAreThere() throws {
        let vectors = try #require(VectorFile.canonical)
        #expect(vectors.uri.vectors.count >= 50)
        #expect(vectors.uri.vectors.contains { $0.reject != nil })
        #expect(vectors.iriMapping.vectors.count >= 3)
        #expect(vectors.mustEqual.vectors.count >= 5)
        #expect(vectors.mustDiffer.vectors.count >= 10)
        #expect(vectors.mayMerge.vectors.count >= 1)
        #expect(vectors.vary.vectors.count >= 20)
        #expect(vectors.primaryKey.vectors.count >= 6)
    }

    @Test func retryGroupsAreThere() throws {
        #expect(try #require(VectorFile.retryAfter).cases.count >= 20)
        let series = try #require(VectorFile.backoff).stateless
        #expect(series.contains { $0.id == "full-jitter" && $0.cases.count >= 30 })
    }

    @Test func seededSourceRepeats() {
        var one = SeededGenerator(seed: 5)
        var other = SeededGenerator(seed: 5)
        #expect((0..<8).map { _ in one.next() } == (0..<8).map { _ in other.next() })
    }

    @Test func seededTextUsesItsAlphabet() {
        var source = SeededGenerator(seed: 5)
        let texts = (0..<50).map { _ in source.text(from: ["ab"], upTo: 9) }
        #expect(texts.contains { $0.contains("ab") })
        #expect(Set(texts).count > 5)
    }

    @Test func noonIsNoon() {
        #expect(date(0) == "Thu, 17 Sep 2026 12:00:00 GMT")
    }
}
