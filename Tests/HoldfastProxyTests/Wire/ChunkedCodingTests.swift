// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastSemantics
    import HoldfastTesting
    import NIOCore
    import Testing

    @Suite("The chunked transfer coding (RFC 9112 §7.1)")
    struct ChunkedCodingTests {
        private struct Decoded: Equatable {
            var content: [UInt8] = []
            /// What followed the body; nil while it has not ended.
            var rest: Int?
        }

        private static func decode(
            _ bytes: [UInt8],
            cuts: (Int) -> Int,
            toleratesPadding: Bool = false
        ) throws(MessageFault) -> Decoded {
            var decoder = ChunkedDecoder(toleratesPadding: toleratesPadding)
            var decoded = Decoded()
            var start = 0
            while start < bytes.count, decoded.rest == nil {
                let end = min(bytes.count, start + max(1, cuts(start)))
                var index = start
                parts: while index < end {
                    let outcome = bytes[index..<end].withUnsafeBytes { part in
                        Result { () throws(MessageFault) in try decoder.next(in: part) }
                    }
                    switch try outcome.get() {
                    case .content(let skipped, let count):
                        decoded.content += bytes[(index + skipped)..<(index + skipped + count)]
                        index += skipped + count
                    case .needsMore:
                        break parts
                    case .end(let skipped):
                        decoded.rest = bytes.count - index - skipped
                        break parts
                    }
                }
                if decoder.isAtEnd, decoded.rest == nil { decoded.rest = bytes.count - index }
                start = end
            }
            return decoded
        }

        @Test(
            "Content comes out whole; framing and trailers are removed",
            arguments: [1, 2, 5, 1000],
            [
                ("0\r\n\r\n", "", 0), ("3\r\nabc\r\n0\r\n\r\nGET", "abc", 3),
                ("00000A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 0),
                ("1;a=\"b c\"\r\nx\r\n1\r\ny\r\n000;z\r\nT: 1\r\nU:\r\n\r\n\r\n", "xy", 2),
                ("a\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n\r\n\r\n\r\n", 0),
            ]
        )
        func decodes(step: Int, vector: (String, String, Int)) throws {
            let decoded = try Self.decode(Array(vector.0.utf8), cuts: { _ in step })
            #expect(decoded == Decoded(content: Array(vector.1.utf8), rest: vector.2))
        }

        @Test(
            "What two recipients could read differently is refused",
            arguments: [1, 1000],
            [
                "\r\n", "x\r\n", "-1\r\nx", "+1\r\nx", "0x1\r\nx", "1\nx", "1\r\nxx", "1\r\nx\n", "1\r\nx\r\r",
                ";a\r\n", "1 \r\nx", "1\rx",
                "1;a\nx", "1;\u{0}\r\n", "10000000000000000\r\n", "FFFFFFFFFFFFFFFF\r\n", "0000000000000000\r\n",
                " 1\r\nx", "1,\r\n",
                "0\r\n: x\r\n\r\n", "0\r\n x\r\n\r\n", "0\r\nA: \u{0}\r\n\r\n", "0\r\n\n", "0\r\nA: b\n\r\n",
                "0\r\n\rx", "0\r\nX y\r\n\r\n", "0\r\nX : y\r\n\r\n", "0\r\nX\r\n\r\n",
            ]
        )
        func refuses(step: Int, text: String) {
            #expect(throws: MessageFault.self) { try Self.decode(Array(text.utf8), cuts: { _ in step }) }
        }

        @Test("Blanks after a size are allowed from an origin")
        func padding() throws {
            let text = Array("3 \t\r\nabc\r\n0  ;x\r\n\r\n".utf8)
            #expect(try Self.decode(text, cuts: { _ in 1 }, toleratesPadding: true).content == Array("abc".utf8))
            #expect(throws: MessageFault.self) { try Self.decode(text, cuts: { _ in 1 }) }
            #expect(throws: MessageFault.self) {
                try Self.decode(Array("3 4\r\n".utf8), cuts: { _ in 1 }, toleratesPadding: true)
            }
        }

        @Test("Extensions, trailers and blanks after a size are bounded")
        func bounds() {
            let long = String(repeating: "x", count: ChunkedDecoder.lineLimit + 1)
            let lines = String(repeating: "A: b\r\n", count: ChunkedDecoder.lineLimit / 4 + 2)
            for text in [
                "1;\(long)\r\n", "0\r\nA: \(long)\r\n", "0\r\n\(lines)", "1 " + long.replacing("x", with: " "),
            ] {
                let fault = #expect(throws: MessageFault.self) {
                    try Self.decode(Array(text.utf8), cuts: { _ in 100_000 }, toleratesPadding: true)
                }
                #expect(fault?.status == 431)
            }
        }

        @Test(
            "The decoder reads what the encoder writes, however it is split",
            arguments: 1...20 as ClosedRange<UInt64>
        )
        func roundTrip(seed: UInt64) throws {
            var generator = SeededGenerator(seed: seed)
            var buffer = ByteBuffer()
            var content: [UInt8] = []
            for _ in 0..<Int.random(in: 0...8, using: &generator) {
                let count = [1, 15, 16, 17, 255, 256, 4095, 4096].randomElement(using: &generator) ?? 1
                let chunk = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
                ChunkedEncoder.begin(count, in: &buffer)
                buffer.writeBytes(chunk)
                ChunkedEncoder.end(in: &buffer)
                content += chunk
            }
            ChunkedEncoder.finish(in: &buffer)
            buffer.writeString("next")
            let cuts = (0..<buffer.readableBytes).map { _ in Int.random(in: 1...3000, using: &generator) }
            let decoded = try Self.decode(Array(buffer.readableBytesView), cuts: { cuts[$0] })
            #expect(decoded == Decoded(content: content, rest: 4), "seed \(seed)")
        }

        @Test("Random bytes have the same outcome however they are split", arguments: 1...30 as ClosedRange<UInt64>)
        func fuzz(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<100 {
                let alphabet = Array("01aF;\r\n\r\n\r\n: x".utf8)
                let bytes = (0..<Int.random(in: 1...40, using: &generator)).map { _ in
                    alphabet.randomElement(using: &generator) ?? 0
                }
                let whole = Result { () throws(MessageFault) in try Self.decode(bytes, cuts: { _ in 1000 }) }
                let single = Result { () throws(MessageFault) in try Self.decode(bytes, cuts: { _ in 1 }) }
                #expect(whole == single, "seed \(seed), \(bytes)")
            }
        }

        @Test("Sizes of all magnitudes are written in hexadecimal")
        func sizes() {
            for (size, text) in [(1, "1"), (15, "f"), (16, "10"), (65_536, "10000"), (Int.max, "7fffffffffffffff")] {
                var buffer = ByteBuffer()
                ChunkedEncoder.begin(size, in: &buffer)
                #expect(String(buffer: buffer) == text + "\r\n")
                #expect(buffer.readableBytes <= ChunkedEncoder.overhead)
            }
        }
    }
#endif
