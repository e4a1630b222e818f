// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    @testable import HoldfastProxy

    @Suite("Response heads (RFC 9112 §4, §5)")
    struct ResponseHeadParserTests {
        struct Good: Sendable, CustomStringConvertible {
            let text: String
            let status: Int
            let fields: [String]
            var isVersion10 = false
            var description: String { text }
        }

        static let good: [Good] = [
            Good(text: "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", status: 200, fields: ["A: b"]),
            Good(text: "HTTP/1.1 200\r\n\r\n", status: 200, fields: []),
            Good(text: "HTTP/1.1 200 \r\n\r\n", status: 200, fields: []),
            Good(text: "HTTP/1.1 999 use the force\r\nX: \r\n\r\n", status: 999, fields: ["X: "]),
            Good(text: "HTTP/1.0 404 Not Found\r\n\r\n", status: 404, fields: [], isVersion10: true),
            Good(text: "HTTP/1.2 200 OK\r\n\r\n", status: 200, fields: []),
            Good(
                text: "HTTP/1.1 103 Early\r\nLink: </a>\r\nLink: </b>\r\n\r\n",
                status: 103,
                fields: ["Link: </a>", "Link: </b>"]
            ),
            Good(text: "HTTP/1.1 200 OK\nA: b\n\n", status: 200, fields: ["A: b"]),
            Good(text: "\r\nHTTP/1.1 200 OK\r\n\r\n", status: 200, fields: []),
            Good(text: "HTTP/1.1 200 OK\r\nA : b\r\nb:c  \r\n\r\n", status: 200, fields: ["A: b", "b: c"]),
            // RFC 9112 §5.2
            Good(
                text: "HTTP/1.1 200 OK\r\nA: b\r\n \t c\r\n\td\r\nE: f\r\n\r\n",
                status: 200,
                fields: ["A: b c d", "E: f"]
            ),
            // A5: what has no meaning is kept all the same.
            Good(
                text: "HTTP/1.1 200 OK\r\nDate: foo\r\nExpires: 0\r\nVary:\r\n\r\n",
                status: 200,
                fields: ["Date: foo", "Expires: 0", "Vary: "]
            ),
        ]

        static let bad: [String] = [
            "NONSENSE\r\n\r\n", "HTTX", "HTTP/2 200 OK\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 0x1 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n",
            "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1\t200 OK\r\n\r\n", "HTTP/1.1 200\tOK\r\n\r\n",
            "HTTP/11 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\rX\r\n\r\n", "HTTP/1.1 200 O\0K\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: no name\r\n\r\n", "HTTP/1.1 200 OK\r\n folded: at once\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\nÄ: c\r\n\r\n",
        ]

        @Test("Heads that are accepted", arguments: good)
        func reads(_ good: Good) throws {
            let (head, count) = try #require(try parse(good.text))
            #expect(head.head.status.rawValue == good.status)
            #expect(head.head.fields.map { "\($0.name): \($0.value)" } == good.fields)
            #expect(head.isVersion10 == good.isVersion10)
            #expect(count == good.text.utf8.count)
        }

        @Test("Heads that are refused", arguments: bad)
        func refuses(_ text: String) {
            #expect(throws: MessageFault.self) { try parse(text) }
        }

        @Test("B15: values are ISO 8859-1, whatever their bytes")
        func bytes() throws {
            let value = (0...255).map { UInt8($0) }.filter { ![0, 9, 10, 13, 32].contains($0) }
            let text = Array("HTTP/1.1 200 OK\r\nX: ".utf8) + value + Array("\r\n\r\n".utf8)
            var parser = ResponseHeadParser()
            let found = try #require(try text.withUnsafeBytes { try parser.read($0) })
            #expect(FieldText.bytes(found.head.head.fields["X"] ?? "") == value)
        }

        @Test("B11: bytes after a head are left alone, and the next head is read from there")
        func several() throws {
            let text = "HTTP/1.1 103 E\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\r\nB: 2\r\n\r\nbody"
            var rest = Array(text.utf8)
            var parser = ResponseHeadParser()
            for status in [103, 200] {
                let found = try #require(try rest.withUnsafeBytes { try parser.read($0) })
                #expect(found.head.head.status.rawValue == status)
                rest.removeFirst(found.count)
            }
            #expect(String(decoding: rest, as: UTF8.self) == "body")
        }

        @Test("Limits of bytes and lines", arguments: [(200, 5, 4, true), (200, 5, 6, false), (60, 50, 6, false)])
        func limits(bytes: Int, lines: Int, count: Int, isRead: Bool) throws {
            let limits = HeadLimits(bytes: bytes, fieldLines: lines)
            let text = "HTTP/1.1 200 OK\r\n" + (0..<count).map { "X-\($0): value\r\n" }.joined() + "\r\n"
            if isRead {
                #expect(try parse(text, limits) != nil)
            } else {
                #expect(throws: MessageFault.self) { try parse(text, limits) }
            }
        }

        @Test("A head without an end is refused at the limit", arguments: [1, 7, 1_000])
        func endless(step: Int) {
            var parser = ResponseHeadParser(limits: HeadLimits(bytes: 10_000))
            #expect(throws: MessageFault.self) {
                _ = try Array("HTTP/1.1 200 OK\r\nX: ".utf8).withUnsafeBytes { try parser.read($0) }
                let more = [UInt8](repeating: UInt8(ascii: "x"), count: step)
                for _ in 0..<(20_000 / step) {
                    _ = try more.withUnsafeBytes { try parser.read($0) }
                }
            }
        }

        @Test("The result does not depend on how the bytes are split", arguments: 0..<300)
        func splits(_ seed: Int) throws {
            var random = SeededGenerator(seed: UInt64(seed))
            var text = Array((Self.good.map(\.text) + Self.bad).randomElement(using: &random)?.utf8 ?? "".utf8)
            // Half of them damaged.
            for _ in 0..<Int.random(in: 0...3, using: &random) where seed % 2 == 0 && !text.isEmpty {
                text[Int.random(in: 0..<text.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            text += Array("tail".utf8)
            let whole = outcome(of: [text])
            var pieces: [[UInt8]] = []
            var rest = text[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...6, using: &random))
                pieces.append(Array(piece))
                rest = rest.dropFirst(piece.count)
            }
            #expect(outcome(of: pieces) == whole, "seed \(seed)")
        }

        @Test("Random bytes never trap", arguments: 0..<100)
        func noise(_ seed: Int) {
            var random = SeededGenerator(seed: UInt64(seed))
            let alphabet = Array("HTTP/1. 20\r\n\r\n:aÄ\0\t".utf8)
            var parser = ResponseHeadParser(limits: HeadLimits(bytes: 500, fieldLines: 5))
            for _ in 0..<50 {
                let noise = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                    alphabet.randomElement(using: &random) ?? 0
                }
                _ = try? (seed % 2 == 0 ? noise : Array("HTTP/1.1 200 ".utf8) + noise).withUnsafeBytes {
                    try parser.read($0)
                }
            }
        }

        /// What a parser makes of pieces: the head and its length, or that it refuses; nil where more is needed.
        private func outcome(of pieces: [[UInt8]]) -> String? {
            var parser = ResponseHeadParser()
            var taken = 0
            do {
                for piece in pieces {
                    if let found = try piece.withUnsafeBytes({ try parser.read($0) }) {
                        return "\(found.head) \(taken + found.count)"
                    }
                    taken += piece.count
                }
                return nil
            } catch {
                return "refused"
            }
        }

        private func parse(
            _ text: String,
            _ limits: HeadLimits = HeadLimits()
        ) throws -> (head: ResponseHeadParser.Head, count: Int)? {
            var parser = ResponseHeadParser(limits: limits)
            return try Array(text.utf8).withUnsafeBytes { try parser.read($0) }
        }
    }
#endif
