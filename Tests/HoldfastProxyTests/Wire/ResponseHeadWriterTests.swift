// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastProxy
    import HoldfastSemantics
    import NIOCore
    import Testing

    @Suite("Writing response heads")
    struct ResponseHeadWriterTests {
        private static func written(
            _ status: StatusCode,
            _ fields: HeaderFields,
            _ framing: ResponseHeadWriter.Framing
        ) -> [UInt8] {
            var buffer = ByteBuffer()
            ResponseHeadWriter.write(status, fields: fields, framing: framing, to: &buffer)
            return Array(buffer.readableBytesView)
        }

        @Test("Every field is written byte for byte and in order (A4, A5, A6)")
        func fields() {
            let fields: HeaderFields = [
                "Date": "foo", "Vary": "", "Set-Cookie": "a=1", "set-cookie": "b=é", "ETag": "\"→\"",
            ]
            let text: [UInt8] =
                Array("HTTP/1.1 999 \r\nDate: foo\r\nVary: \r\nSet-Cookie: a=1\r\nset-cookie: b=".utf8) + [0xE9]
                + Array("\r\nETag: \"→\"\r\nContent-Length: 0\r\n\r\n".utf8)
            #expect(Self.written(999, fields, .init(.length(0))) == text)
        }

        @Test("Framing and connection fields are the server's own, whatever the fields say")
        func framing() {
            let fields: HeaderFields = [
                "Content-Length": "5", "connection": "keep-alive, X-A", "Transfer-Encoding": "gzip", "X-A": "1",
            ]
            let vectors: [(ResponseHeadWriter.Framing, String)] = [
                (.init(.unsaid), ""), (.init(.length(1_234_567)), "Content-Length: 1234567\r\n"),
                (.init(.chunked, connection: .close), "Transfer-Encoding: chunked\r\nConnection: close\r\n"),
                (.init(.unsaid, connection: .keepAlive), "Connection: keep-alive\r\n"),
            ]
            for (framing, lines) in vectors {
                #expect(
                    Self.written(200, fields, framing) == Array("HTTP/1.1 200 OK\r\nX-A: 1\r\n\(lines)\r\n".utf8)
                )
            }
        }

        @Test("No value can end its line")
        func injection() {
            let head = Self.written(200, ["X": "a\r\nSet-Cookie: b\n\u{0}c"], .init(.unsaid))
            #expect(head == Array("HTTP/1.1 200 OK\r\nX: a  Set-Cookie: b  c\r\n\r\n".utf8))
        }
    }
#endif
