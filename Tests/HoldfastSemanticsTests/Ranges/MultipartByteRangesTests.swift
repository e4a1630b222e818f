// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct MultipartByteRangesTests {
    private func bytes(_ body: MultipartByteRanges, of content: [UInt8]) -> [UInt8] {
        body.pieces.flatMap { piece in
            switch piece {
            case .literal(let bytes): bytes
            case .stored(let interval): Array(content[Int(interval.lowerBound)..<Int(interval.upperBound)])
            }
        }
    }

    @Test("RFC 9110 §14.6: the framing of two parts")
    func framing() {
        let body = MultipartByteRanges(
            intervals: [6..<9, 0..<2],
            completeLength: 10,
            contentType: "text/plain",
            seed: 0xAB
        )
        let expected = """
            --holdfast-00000000000000ab\r
            Content-Type: text/plain\r
            Content-Range: bytes 6-8/10\r
            \r
            678\r
            --holdfast-00000000000000ab\r
            Content-Type: text/plain\r
            Content-Range: bytes 0-1/10\r
            \r
            01\r
            --holdfast-00000000000000ab--\r

            """
        #expect(String(decoding: bytes(body, of: Array("0123456789".utf8)), as: UTF8.self) == expected)
        #expect(body.contentLength == Int64(expected.utf8.count))
        #expect(body.contentType == "multipart/byteranges; boundary=holdfast-00000000000000ab")
    }

    @Test("Parts without a type, and without a known length")
    func sparse() {
        let body = MultipartByteRanges(intervals: [0..<1, 5..<6], completeLength: nil, contentType: nil, seed: .max)
        let text = String(decoding: bytes(body, of: Array("0123456789".utf8)), as: UTF8.self)
        #expect(text.hasPrefix("--holdfast-ffffffffffffffff\r\nContent-Range: bytes 0-0/*\r\n\r\n0\r\n--"))
        #expect(!text.contains("Content-Type"))
    }

    @Test("A stored type cannot break out of its line")
    func cleanType() {
        let body = MultipartByteRanges(
            intervals: [0..<1],
            completeLength: 1,
            contentType: "a/b\r\nX-Injected: 1",
            seed: 1
        )
        guard case .literal(let lead) = body.pieces.first else { return #expect(Bool(false)) }
        #expect(!String(decoding: lead, as: UTF8.self).contains("\r\nX-Injected"))
    }

    @Test("The announced length equals the bytes sent", arguments: propertySeeds)
    func length(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        let content = Array(repeating: UInt8(ascii: "x"), count: 3000)
        for _ in 0..<300 {
            let intervals = (0..<Int.random(in: 0...6, using: &source)).map { _ in
                let low = Int64.random(in: -2...2999, using: &source)
                return low..<Int64.random(in: low...3000, using: &source)
            }
            let body = MultipartByteRanges(
                intervals: intervals,
                completeLength: Bool.random(using: &source) ? 3000 : nil,
                contentType: Bool.random(using: &source) ? source.text(from: ["a", "/", "é"], upTo: 9) : nil,
                seed: source.next()
            )
            #expect(body.contentLength == Int64(bytes(body, of: content).count))
            let parts = body.pieces.filter { if case .stored = $0 { true } else { false } }
            #expect(parts.count == intervals.filter { $0.lowerBound >= 0 && !$0.isEmpty }.count)
        }
    }

    @Test("Lengths beyond 64 bits saturate")
    func saturation() {
        let large = 0..<(ByteRange.limit - 1)
        let body = MultipartByteRanges(intervals: [large, large], completeLength: nil, contentType: nil, seed: 1)
        #expect(body.contentLength == .max)
    }

    @Test(
        "Which content is framed this way",
        arguments: [
            ("multipart/byteranges; boundary=x", true), ("Multipart/ByteRanges", true), ("multipart/mixed", false),
            ("text/plain; a=multipart/byteranges", false), ("", false),
        ]
    )
    func recognition(value: String, expected: Bool) {
        #expect(MultipartByteRanges.isContent(of: ["Content-Type": value]) == expected)
    }
}
