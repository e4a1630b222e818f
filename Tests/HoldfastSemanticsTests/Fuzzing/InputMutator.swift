// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting

/// Makes hostile inputs out of good ones, the same ones for the same seed.
///
/// It keeps a pool that starts with the corpus; each input comes from a pool member by a few random edits and replaces a
/// random one, so inputs drift further from the corpus the longer a run lasts.
struct InputMutator {
    private var source: SeededGenerator
    private let corpus: [[UInt8]]
    private var pool: [[UInt8]]

    /// Inputs do not grow beyond this, so that a run makes many rather than long ones.
    private static let maximumLength = 4096

    /// Characters that mean something in one of the formats, and bytes that often go wrong.
    private static let pieces: [[UInt8]] =
        [
            "\"", "\\", ",", ", ", ";", "=", "(", ")", " ", "\t", "*", "?", "?1", "@", ":", "%", "%\"", "%2e", "%c3%bc",
            "/", "//", "..", "#", "-", "-0", ".", "0", "9", "999999999999999", "9223372036854775807",
            "99999999999999999999", "1.5", "W/\"", "GMT", "é", "\u{0}", "\u{7F}", "\r\n", "a=", "no-cache=\"",
            "max-age=",
        ].map { Array($0.utf8) } + [[0xFF], [0xC3], [0xED, 0xA0, 0x80]]

    init(seed: UInt64, corpus: [String]) {
        source = SeededGenerator(seed: seed)
        self.corpus = corpus.map { Array($0.utf8) } + [[]]
        pool = self.corpus
    }

    mutating func next() -> [UInt8] {
        // One in eight starts afresh, or the pool would end as noise that every parser refuses at its first byte.
        let isFresh = Int.random(in: 0..<8, using: &source) == 0
        var input = (isFresh ? corpus : pool).randomElement(using: &source) ?? []
        for _ in 0..<Int.random(in: 1...4, using: &source) { edit(&input) }
        if input.count > Self.maximumLength { input.removeLast(input.count - Self.maximumLength) }
        pool[Int.random(in: 0..<pool.count, using: &source)] = input
        return input
    }

    private mutating func edit(_ input: inout [UInt8]) {
        let start = Int.random(in: 0...input.count, using: &source)
        let end = min(input.count, start + Int.random(in: 0...12, using: &source))
        switch Int.random(in: 0..<8, using: &source) {
        case 0 where start < input.count:
            input[start] = UInt8.random(in: .min ... .max, using: &source)
        case 1 where start < input.count:
            input[start] ^= 1 << UInt8.random(in: 0..<8, using: &source)
        case 2:
            input.removeSubrange(start..<end)
        case 3:
            let copy = Array(input[start..<end])
            input.insert(contentsOf: Array(repeatElement(copy, count: 3).joined()), at: start)
        case 4:
            let other = pool.randomElement(using: &source) ?? []
            let cut = Int.random(in: 0...other.count, using: &source)
            input.replaceSubrange(start..., with: other[cut...])
        default:
            let piece = Self.pieces.randomElement(using: &source) ?? []
            let count = Int.random(in: 0..<24, using: &source) == 0 ? 64 : 1
            input.insert(contentsOf: Array(repeatElement(piece, count: count).joined()), at: start)
        }
    }
}
