// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastTesting
    import Testing

    @Suite("Request heads from random bytes, split randomly", .timeLimit(.minutes(20)))
    struct RequestFuzzTests {
        private static let pieces = [
            "GET / HTTP/1.1\r\n", "POST /a?b HTTP/1.1\r\n", "GET / HTTP/1.0\r\n", "PRI * HTTP/2.0\r\n", "Host: x\r\n",
            "Host: y\r\n",
            "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "X: \u{E9}\r\n", " fold\r\n", "\r\n", "\r\n",
            "\n", "\r", "\u{0}", ":", " ",
            "Connection: close\r\n", "A:b\r\n",
        ]

        @Test("The outcome does not depend on how the bytes are split", arguments: 1...40 as ClosedRange<UInt64>)
        func splits(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<60 {
                var text = ""
                for _ in 0..<Int.random(in: 1...12, using: &generator) {
                    text += RequestFuzzTests.pieces.randomElement(using: &generator) ?? ""
                }
                var bytes = FieldText.bytes(text)
                if Bool.random(using: &generator), let index = bytes.indices.randomElement(using: &generator) {
                    bytes[index] = UInt8.random(in: 0...255, using: &generator)
                }
                let limits = HeadLimits(bytes: 120, fieldLines: 3, target: 4)
                let whole = ReadHeads(bytes, limits: limits)
                let cuts = bytes.map { _ in Int.random(in: 1...9, using: &generator) }
                #expect(ReadHeads(bytes, limits: limits) { _ in 1 } == whole, "seed \(seed), \(text.debugDescription)")
                #expect(
                    ReadHeads(bytes, limits: limits) { cuts[$0] } == whole,
                    "seed \(seed), \(text.debugDescription)"
                )
            }
        }

        @Test("A large head that arrives byte by byte costs linear time: 60 KiB are parsed at once")
        func linear() {
            let lines = (0..<60).map { "X-\($0): " + String(repeating: "v", count: 1000) + "\r\n" }.joined()
            let bytes = Array("GET / HTTP/1.1\r\nHost: x\r\n\(lines)\r\n".utf8)
            #expect(ReadHeads(bytes) { _ in 1 }.messages.first?.fields.count == 61)
        }
    }
#endif
