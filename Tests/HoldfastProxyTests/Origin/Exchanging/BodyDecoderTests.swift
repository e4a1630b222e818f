// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastStorage
    import HoldfastTesting
    import NIOCore
    import Testing

    @testable import HoldfastProxy

    @Suite("Decoding a response body from its bytes (RFC 9112 §6, §7.1)")
    struct BodyDecoderTests {
        struct Case: Sendable {
            let body: ResponseFraming.Body
            let bytes: String
            let content: String
            var isAtEnd = true
            var hasSurplus = false
        }

        static let cases = [
            Case(body: .length(4), bytes: "body", content: "body"),
            Case(body: .length(4), bytes: "bodyHTTP", content: "body", hasSurplus: true),
            Case(body: .length(4), bytes: "bod", content: "bod", isAtEnd: false),
            Case(body: .none, bytes: "", content: ""),
            Case(body: .none, bytes: "x", content: "", hasSurplus: true),
            Case(body: .untilClose, bytes: "5\r\nhello", content: "5\r\nhello", isAtEnd: false),
            Case(
                body: .chunked,
                bytes: "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
                content: "abc0123456789"
            ),
            Case(body: .chunked, bytes: "3 \r\nabc\r\n0\r\n\r\n", content: "abc"),
            Case(body: .chunked, bytes: "0\r\n\r\nHTTP", content: "", hasSurplus: true),
            Case(body: .chunked, bytes: "3\r\nabc\r\n0\r\n", content: "abc", isAtEnd: false),
        ]

        @Test("The result does not depend on how the bytes are split", arguments: cases, 0..<10)
        func decode(_ example: Case, seed: Int) throws {
            var random = SeededGenerator(seed: UInt64(seed))
            var decoder = BodyDecoder(example.body)
            var content: [UInt8] = []
            var rest = Array(example.bytes.utf8)[...]
            while !rest.isEmpty {
                let piece = rest.prefix(seed == 0 ? rest.count : Int.random(in: 1...4, using: &random))
                content += try decoder.decode(ByteBuffer(bytes: piece)).array
                rest = rest.dropFirst(piece.count)
            }
            #expect(String(decoding: content, as: UTF8.self) == example.content)
            #expect(decoder.isAtEnd == example.isAtEnd)
            #expect(decoder.hasSurplus == example.hasSurplus)
            let isWhole = decoder.endOfInput()
            #expect(isWhole == (example.isAtEnd || example.body == .untilClose))
        }
    }
#endif
