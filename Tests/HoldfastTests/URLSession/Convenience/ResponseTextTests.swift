// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import Holdfast

@Suite("Lines, characters and scalars of ResponseBytes", .timeLimit(.minutes(20)))
struct ResponseTextTests {
    private static func lines(_ text: String) async throws -> [String] {
        var generator = SeededGenerator(seed: 1)
        return try await ResponseBytesTests.cut(Array(text.utf8), using: &generator).lines.all()
    }

    @Test(
        "Every line ending that Foundation knows",
        arguments: ["\n", "\u{B}", "\u{C}", "\r", "\r\n", "\u{85}", "\u{2028}", "\u{2029}"]
    )
    func lineEnds(_ end: String) async throws {
        #expect(try await Self.lines("one\(end)zwei é\(end)") == ["one", "zwei é"])
        #expect(try await Self.lines("one\(end)no end") == ["one", "no end"])
        #expect(try await Self.lines("\(end)a\(end)\(end)\(end)b\(end)\(end)") == ["a", "b"])
        #expect(try await Self.lines(end).isEmpty)
    }

    @Test("Characters that share bytes with line endings do not end a line")
    func lookAlikes() async throws {
        // 85, A8 and A9 stand at the end of these, too.
        let text = "Å à ¨ © ‧ … \u{E028} ∨ ⁨x"
        #expect(try await Self.lines(text + "\n" + text) == [text, text])
        let bytes: [UInt8] = [0x85, 0x0A, 0xA8, 0xC2, 0x0A, 0xE2, 0x80, 0x0A, 0x61]
        var generator = SeededGenerator(seed: 2)
        #expect(
            try await ResponseBytesTests.cut(bytes, using: &generator).lines.all()
                == ["\u{FFFD}", "\u{FFFD}\u{FFFD}", "\u{FFFD}", "a"]
        )
    }

    @Test("A line that ends with CR is delivered without waiting for what follows")
    func promptness() async throws {
        let source = ChunkSource([ByteChunk(copying: "now\r".utf8)], fails: true)
        var lines = ResponseBytes(ResponseBody(source)).lines.makeAsyncIterator()
        #expect(try await lines.next() == "now")
        await #expect(throws: ChunkSource.Failure.self) { try await lines.next() }
    }

    @Test("Property: scalars, characters and lines equal String's, however the chunks are split", arguments: 0..<40)
    func asString(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        for _ in 0..<300 {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: bytes.append(.random(in: 0...255, using: &generator))
            case 1: bytes += Array("e\u{301}🇩🇪👩‍👩‍👧\r\n\u{2028}\u{85}".utf8).part(using: &generator)
            case 2: bytes += Array("👩‍👩‍👧🇫🇷ä\n".utf8)
            case 3:
                bytes +=
                    [[0xE0, 0x9F], [0xED, 0xA0, 0x80], [0xF0, 0x8F], [0xF4, 0x90], [0xC1, 0x80]]
                    .randomElement(using: &generator) ?? []
            default: bytes += Array("text ".utf8)
            }
        }
        let text = String(decoding: bytes, as: UTF8.self)
        let scalars = try await ResponseBytesTests.cut(bytes, using: &generator).unicodeScalars.all()
        #expect(scalars == Array(text.unicodeScalars), "seed \(seed)")
        let characters = try await ResponseBytesTests.cut(bytes, using: &generator).characters.all()
        #expect(characters == Array(text), "seed \(seed)")
        let ends: Set<Unicode.Scalar> = ["\n", "\u{B}", "\u{C}", "\r", "\u{85}", "\u{2028}", "\u{2029}"]
        let lines = text.unicodeScalars.split { ends.contains($0) }.map { String($0) }
        #expect(try await ResponseBytesTests.cut(bytes, using: &generator).lines.all() == lines, "seed \(seed)")
    }
}

extension [UInt8] {
    /// Some bytes from the middle.
    fileprivate func part(using generator: inout SeededGenerator) -> ArraySlice<UInt8> {
        let start = Int.random(in: 0..<count, using: &generator)
        return self[start..<Int.random(in: start...count, using: &generator)]
    }
}
