// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct GroupTagsTests {
    private func groups(_ count: Int) -> CacheGroups {
        CacheGroups(["Cache-Groups": (0..<count).map { "\"g\($0)\"" }.joined(separator: ", ")])
    }

    private func tags(_ uri: String = "https://h.example/a") throws -> GroupTags {
        GroupTags(of: try TargetURI(uri), secret: [1, 2, 3])
    }

    @Test("RFC 9875 §2.1: equal names of one origin share a tag, others do not")
    func origins() throws {
        let one = try tags().words(for: groups(1), room: 64)
        #expect(one.count == 1)
        #expect(try tags("https://h.example/b?x").words(for: groups(1), room: 64) == one)
        for other in ["http://h.example/a", "https://h.example:444/a", "https://i.example/a"] {
            #expect(try tags(other).words(invalidating: groups(1)).isDisjoint(with: one))
        }
        let upper = try tags().words(invalidating: CacheGroups(["Cache-Groups": "\"G0\""]))
        #expect(upper.isDisjoint(with: one))
        #expect(GroupTags(of: try target(), secret: [9]).words(for: groups(1), room: 64).isDisjoint(with: one))
    }

    @Test("Tags are few and short, and still cover every group", arguments: [1, 2, 63, 64])
    func bounded(room: Int) throws {
        let words = try tags().words(for: groups(100), room: room)
        #expect(words.count == room && words.allSatisfy { $0.utf8.count <= 1_024 })
        for index in [0, room, 99] {
            let one = CacheGroups(["Cache-Groups": "\"g\(index)\""])
            #expect(try !tags().words(invalidating: one).isDisjoint(with: words))
        }
    }

    @Test("Without groups there are no tags")
    func none() throws {
        #expect(try tags().words(for: groups(0), room: 64).isEmpty && tags().words(invalidating: groups(0)).isEmpty)
        #expect(try tags().words(for: groups(3), room: 0).isEmpty)
    }
}
