// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastStorage

@Suite("Purges by tag and prefix are remembered while there is something to purge")
struct PurgeMarksTests {
    private static let hashing = KeyHashing(seed: 7)

    private static func takes(_ marks: PurgeMarks, order: UInt64, tags: Set<String> = [], key: String = "") -> Bool {
        marks.takes(order: order, tags: tags, key: StoreKey(Array(key.utf8)), hashing: hashing)
    }

    @Test("A tag mark removes entries of a lower order that have the tag")
    func tags() {
        var marks = PurgeMarks()
        marks.add(.tag(Self.hashing.tag("news")), order: 5, horizon: 3)
        marks.add(.tag(Self.hashing.tag("sport")), order: 9, horizon: 3)
        #expect(Self.takes(marks, order: 4, tags: ["other", "news"]))
        #expect(!Self.takes(marks, order: 5, tags: ["news"]))
        #expect(!Self.takes(marks, order: 4, tags: ["other"]))
        #expect(Self.takes(marks, order: 8, tags: ["sport"]))
        #expect(marks.newestOrder == 9)
    }

    @Test("A prefix mark removes entries of a lower order whose key begins with it")
    func prefixes() {
        var marks = PurgeMarks()
        marks.add(.prefix(Array("https://a.example/".utf8)), order: 5, horizon: 3)
        #expect(Self.takes(marks, order: 4, key: "https://a.example/1"))
        #expect(!Self.takes(marks, order: 5, key: "https://a.example/1"))
        #expect(!Self.takes(marks, order: 4, key: "https://b.example/1"))
    }

    @Test("The newer of two marks replaces both, in whichever order they come")
    func newerStands() {
        var marks = PurgeMarks()
        let tag = Self.hashing.tag("t")
        marks.add(.tag(tag), order: 9, horizon: 8)
        marks.add(.tag(tag), order: 5, horizon: 3)
        #expect(marks.count == 1)
        #expect(Self.takes(marks, order: 8, tags: ["t"]))
        marks.prune(lowest: 8)
        #expect(marks.count == 1)
        #expect(marks.newestOrder == 9)
        #expect(Self.takes(marks, order: 8, tags: ["t"]))
        #expect(!Self.takes(marks, order: 9, tags: ["t"]))
    }

    @Test("Marks are dropped with the last segment up to their horizon")
    func prune() {
        var marks = PurgeMarks()
        marks.add(.tag(1), order: 5, horizon: 3)
        marks.add(.prefix([1, 2]), order: 9, horizon: 4)
        marks.prune(lowest: 4)
        #expect(marks.count == 1)
        #expect(marks.newestOrder == 9)
        #expect(marks.droppedOrder == 5)
        marks.prune(lowest: 5)
        #expect(marks.count == 0)
        #expect(marks.newestOrder == 0)
        #expect(marks.droppedOrder == 9)
    }

    @Test("The number of marks and the bytes of prefixes are bounded")
    func bounds() {
        var marks = PurgeMarks()
        for number in 0..<UInt64(PurgeMarks.bound) {
            #expect(!marks.isFull)
            marks.add(.tag(number), order: number + 1, horizon: 1)
        }
        #expect(marks.isFull)
        marks.forget(upTo: .max)
        #expect(!marks.isFull)
        marks.add(.prefix([UInt8](repeating: 1, count: PurgeMarks.prefixBound)), order: 1, horizon: 1)
        #expect(marks.isFull)
    }
}
