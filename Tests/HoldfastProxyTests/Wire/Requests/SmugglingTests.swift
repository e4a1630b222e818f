// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("Requests that two recipients could read differently (RFC 9112 §11.2)")
    struct SmugglingTests {
        @Test(
            "They are refused, and nothing after them is read as a request",
            arguments: [
                ("Content-Length: 5\r\nContent-Length: 6", 400), ("Content-Length: 5\r\nContent-Length: 5", 400),
                ("Content-Length: 5, 5", 400), ("Content-Length: 5,6", 400), ("Content-Length: +5", 400),
                ("Content-Length: -5", 400),
                ("Content-Length: 0x5", 400), ("Content-Length: 5 6", 400), ("Content-Length:", 400),
                ("Content-Length: 5.0", 400),
                ("Content-Length: 99999999999999999999999", 400), ("Content-Length: 18446744073709551621", 400),
                ("Content-Length: \u{B2}", 400), ("Content-Length: 5;x", 400), ("Content-Length : 5", 400),
                ("Content-Length\t: 5", 400),
                ("Content-Length: 5\r\n 6", 400), ("X: y\r\n Content-Length: 5", 400),
                ("X: y\r\n\tContent-Length: 5", 400),
                ("Content-Length: 5\u{0}", 400), ("Content-Length\u{0}: 5", 400), ("Content\u{0B}-Length: 5", 400),
                ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
                ("Transfer-Encoding: chunked\r\nContent-Length: 0", 400),
                ("Transfer-Encoding: chunked, chunked", 400),
                ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
                ("Transfer-Encoding: chunked, identity", 400), ("Transfer-Encoding: identity", 400),
                ("Transfer-Encoding: gzip", 400),
                ("Transfer-Encoding: gzip, chunked", 501),
                ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 501),
                ("Transfer-Encoding: cow, chunked", 501), ("Transfer-Encoding: chunked;q=1", 400),
                ("Transfer-Encoding: ,chunked", 400),
                ("Transfer-Encoding: chunked,", 400), ("Transfer-Encoding:", 400),
                ("Transfer-Encoding: \"chunked\"", 400),
                ("Transfer-Encoding: xchunked", 400), ("Transfer-Encoding: chunked\u{0B}", 400),
                ("Transfer-Encoding : chunked", 400),
                ("Transfer-Encoding:\r\n chunked", 400), ("Transfer-Encoding\r\n: chunked", 400),
                (" Transfer-Encoding: chunked", 400),
                ("X: \rTransfer-Encoding: chunked", 400), ("X: y\nTransfer-Encoding: chunked", 400), ("\r: x", 400),
                ("X: y\r", 400),
            ]
        )
        func refused(lines: String, status: Int) {
            let text =
                "POST / HTTP/1.1\r\nHost: x\r\n\(lines)\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
            let heads = ReadHeads(text)
            #expect(heads.messages.isEmpty)
            #expect(heads.fault?.status.rawValue == status)
        }

        @Test(
            "They are accepted, with one meaning",
            arguments: [
                ("Content-Length: 5", RequestFraming.Content.length(5)), ("content-length:\t005 ", .length(5)),
                ("Content-Length: 0", .none), ("Content-Length: 999999999999999999", .length(999_999_999_999_999_999)),
                ("transfer-encoding: CHUNKED", .chunked), ("Transfer-Encoding:\tchunked\t", .chunked), ("X: y", .none),
            ]
        )
        func accepted(lines: String, content: RequestFraming.Content) {
            let heads = ReadHeads("POST / HTTP/1.1\r\nHost: x\r\n\(lines)\r\n\r\n")
            #expect(heads.messages.first?.framing.content == content)
        }

        @Test("HTTP/1.0 has no transfer coding, and a request with one is refused")
        func http10() {
            #expect(ReadHeads("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").fault?.status == 400)
        }

        @Test(
            "The connection is kept as version and Connection say (RFC 9112 §9.3)",
            arguments: [
                ("1.1", "X: y", true), ("1.0", "X: y", false), ("1.1", "Connection: close", false),
                ("1.1", "connection: x, CLOSE", false),
                ("1.0", "Connection: Keep-Alive", true), ("1.0", "Connection: keep-alive, close", false),
                ("1.1", "Connection: closed", true), ("1.1", "Connection: a\r\nConnection: close", false),
            ]
        )
        func persistence(version: String, lines: String, keeps: Bool) {
            let heads = ReadHeads("GET / HTTP/\(version)\r\nHost: x\r\n\(lines)\r\n\r\n")
            #expect(heads.messages.first?.framing.keepsAlive == keeps)
        }
    }
#endif
