// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("Where a response's body ends, and whether its connection is kept (RFC 9112 §6.3, §9.3)")
    struct ResponseFramingTests {
        struct Case: Sendable, CustomStringConvertible {
            var status = 200
            var method: RequestMethod = .get
            var fields: [(String, String)] = []
            var isVersion10 = false
            /// Nil: refused.
            let body: ResponseFraming.Body?
            var persists = true
            var description: String { "\(method) \(status) \(fields) \(isVersion10 ? "1.0" : "")" }
        }

        static let cases: [Case] = [
            Case(fields: [("Content-Length", "5")], body: .length(5)),
            Case(fields: [("Content-Length", "5, 5"), ("content-length", " 5")], body: .length(5)),
            Case(fields: [("Content-Length", "0")], body: .length(0)),
            Case(body: .untilClose, persists: false),
            Case(fields: [("Transfer-Encoding", "chunked")], body: .chunked),
            Case(fields: [("Transfer-Encoding", "Chunked")], body: .chunked),
            // The client would get coded octets.
            Case(fields: [("Transfer-Encoding", "gzip, Chunked")], body: nil),
            Case(fields: [("Transfer-Encoding", "gzip"), ("Transfer-Encoding", "chunked")], body: nil),
            Case(fields: [("Transfer-Encoding", "GZIP")], body: nil),
            Case(fields: [("Transfer-Encoding", "chunked, identity")], body: nil),
            // B7: read to the close.
            Case(fields: [("Transfer-Encoding", "apetix")], body: .untilClose, persists: false),
            Case(fields: [("Transfer-Encoding", "chunked, gzip")], body: nil),
            Case(
                fields: [("Transfer-Encoding", "apetix"), ("Content-Length", "5")],
                body: .untilClose,
                persists: false
            ),
            Case(fields: [("Transfer-Encoding", "chunked, chunked")], body: nil),
            // RFC 9112 §6.3: Transfer-Encoding wins, and the connection is not trusted any further.
            Case(fields: [("Transfer-Encoding", "chunked"), ("Content-Length", "5")], body: .chunked, persists: false),
            Case(
                fields: [("Transfer-Encoding", "chunked"), ("Connection", "keep-alive")],
                isVersion10: true,
                body: .chunked,
                persists: false
            ),
            Case(fields: [("Content-Length", "5"), ("Content-Length", "6")], body: nil),
            Case(fields: [("Content-Length", "5, 6")], body: nil),
            Case(fields: [("Content-Length", "+5")], body: nil),
            Case(fields: [("Content-Length", "-5")], body: nil),
            Case(fields: [("Content-Length", "")], body: nil),
            Case(fields: [("Content-Length", "5x")], body: nil),
            Case(fields: [("Content-Length", "99999999999999999999")], body: nil),
            Case(fields: [("Content-Length", "999999999999999999")], body: .length(999_999_999_999_999_999)),
            Case(fields: [("Content-Length", "9223372036854775807")], body: nil),
            // B8: no body whatever the fields say.
            Case(status: 304, fields: [("Content-Length", "10")], body: ResponseFraming.Body.none),
            Case(status: 304, fields: [("Transfer-Encoding", "chunked")], body: ResponseFraming.Body.none),
            Case(status: 204, fields: [("Content-Length", "10")], body: ResponseFraming.Body.none),
            Case(method: .head, fields: [("Content-Length", "10")], body: ResponseFraming.Body.none),
            Case(method: .head, body: ResponseFraming.Body.none),
            Case(status: 205, fields: [("Content-Length", "3")], body: .length(3)),
            Case(fields: [("Content-Length", "5"), ("Connection", "X, Close")], body: .length(5), persists: false),
            Case(fields: [("Content-Length", "5")], isVersion10: true, body: .length(5), persists: false),
            Case(fields: [("Content-Length", "5"), ("Connection", "Keep-Alive")], isVersion10: true, body: .length(5)),
        ]

        @Test(arguments: cases)
        func decide(_ example: Case) throws {
            var fields = HeaderFields()
            for (name, value) in example.fields { fields.append(rawName: name, value: value) }
            var head = ResponseHeadParser.Head(
                head: ResponseHead(status: StatusCode(example.status), fields: fields),
                isVersion10: example.isVersion10
            )
            guard let body = example.body else {
                #expect(throws: MessageFault.self) { try ResponseFraming.decide(&head, answering: example.method) }
                return
            }
            let framing = try ResponseFraming.decide(&head, answering: example.method)
            #expect(framing == ResponseFraming(body: body, isPersistent: example.persists))
            // RFC 9112 §6.3: beside a Transfer-Encoding it says nothing, and nobody after us may believe it.
            if body == .chunked || body == .untilClose { #expect(!head.head.fields.contains(.contentLength)) }
        }
    }
#endif
