// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    /// How often each of a few words came up; beyond the bound they are counted together.
    struct Tally: Sendable, Hashable {
        private static let maximumWords = 40

        private var counts: [String: Int] = [:]

        /// All that was counted.
        private(set) var total = 0

        mutating func add(_ word: String, _ count: Int = 1) {
            guard count > 0 else { return }
            total += count
            counts[counts[word] != nil || counts.count < Self.maximumWords ? word : "others", default: 0] += count
        }

        subscript(_ word: String) -> Int { counts[word] ?? 0 }

        var isEmpty: Bool { counts.isEmpty }

        /// The words, the most frequent first.
        var sorted: [(word: String, count: Int)] {
            counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
        }
    }
#endif
