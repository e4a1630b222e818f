// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastSemantics
    import Testing

    @Suite("Where a head ends")
    struct HeadScannerTests {
        private static func end(
            _ text: String,
            rules: FieldLines.Rules = .request,
            limits: HeadLimits = HeadLimits(),
            step: Int
        ) throws(MessageFault) -> Int? {
            var scanner = HeadScanner(limits: limits, rules: rules)
            let bytes = Array(text.utf8)
            var count = 0
            while count < bytes.count {
                count = min(bytes.count, count + step)
                let outcome = bytes[..<count].withUnsafeBytes { part in
                    Result { () throws(MessageFault) in try scanner.end(in: part) }
                }
                if let end = try outcome.get() { return end }
            }
            return nil
        }

        @Test(
            "The end is found however the bytes are split",
            arguments: [1, 2, 3, 7, 1000],
            [("a b\r\nc: d\r\n\r\nxy", 13), ("\r\na\r\n\r\n", 7), ("a\r\nb: c\r\n", nil), ("a\r\n\r\n\r\n", 5)]
        )
        func ends(step: Int, vector: (String, Int?)) throws {
            #expect(try Self.end(vector.0, step: step) == vector.1)
        }

        @Test("A bare line feed ends lines where the rules allow it", arguments: [1, 4, 100])
        func bareLineFeeds(step: Int) throws {
            #expect(try Self.end("a\nb: c\n\nx", rules: .response, step: step) == 8)
            #expect(throws: MessageFault.self) { try Self.end("a\nb: c\n\nx", step: step) }
        }

        @Test("A head that is too long is refused with the limit it exceeds", arguments: [1, 100, 10_000])
        func limits(step: Int) {
            let limits = HeadLimits(bytes: 100)
            let line = #expect(throws: MessageFault.self) {
                try Self.end(String(repeating: "a", count: 200), limits: limits, step: step)
            }
            #expect(line?.status == 414)
            let fields = #expect(throws: MessageFault.self) {
                try Self.end(
                    "GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 50),
                    limits: limits,
                    step: step
                )
            }
            #expect(fields?.status == 431)
        }

        @Test("Bytes that cannot begin a message are refused at the first wrong byte")
        func notHTTP() {
            #expect(throws: MessageFault.self) { try Self.end("\u{16}", step: 1) }
        }
    }
#endif
