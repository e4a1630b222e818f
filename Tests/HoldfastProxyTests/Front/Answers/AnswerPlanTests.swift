// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import Testing

    @testable import HoldfastProxy

    @Suite("How responses are framed (RFC 9112 §6.3)")
    struct AnswerPlanTests {
        private enum Body: Sendable { case none, five, stream, streamOfFive }

        private static func plan(
            _ status: StatusCode,
            _ body: Body,
            fields: HeaderFields = [:],
            method: RequestMethod = .get,
            version: HTTPVersion = .http11,
            keepsAlive: Bool = true
        ) -> AnswerPlan {
            let content =
                switch body {
                case .none: ResponseBody()
                case .five: ResponseBody(ByteChunk(copying: "12345".utf8))
                case .stream: ResponseBody(CountingSource(chunk: 1))
                case .streamOfFive: ResponseBody(CountingSource(chunk: 1), length: 5)
                }
            return AnswerPlan(
                Response(status: status, fields: fields, body: content),
                to: .init(method: method, version: version, keepsAlive: keepsAlive)
            )
        }

        private static func shape(_ plan: AnswerPlan) -> String {
            let content =
                switch plan.content {
                case .none: "none"
                case .bytes(let bytes): "bytes \(bytes.count)"
                case .exactly(let length, _): "exactly \(length)"
                case .chunked: "chunked"
                case .untilClose: "until close"
                }
            return "\(plan.framing.content), \(content), \(plan.framing.connection), \(plan.keepsAlive)"
        }

        @Test("Content-Length is sent wherever the length is known (A7)")
        func lengths() {
            #expect(Self.shape(Self.plan(200, .five)) == "length(5), bytes 5, unsaid, true")
            #expect(Self.shape(Self.plan(200, .none)) == "length(0), bytes 0, unsaid, true")
            #expect(Self.shape(Self.plan(200, .streamOfFive)) == "length(5), exactly 5, unsaid, true")
            #expect(Self.shape(Self.plan(200, .stream)) == "chunked, chunked, unsaid, true")
            // What the fields say counts where the body does not say it itself.
            #expect(
                Self.shape(Self.plan(200, .stream, fields: ["Content-Length": "7"]))
                    == "length(7), exactly 7, unsaid, true"
            )
            #expect(
                Self.shape(Self.plan(200, .five, fields: ["Content-Length": "7"])) == "length(5), bytes 5, unsaid, true"
            )
            for bad in ["x", "-1", "1, 2", "99999999999999999999"] {
                #expect(
                    Self.shape(Self.plan(200, .stream, fields: ["Content-Length": bad]))
                        == "chunked, chunked, unsaid, true"
                )
            }
            #expect(
                Self.shape(Self.plan(200, .stream, fields: ["Content-Length": "7", "content-length": "8"]))
                    == "chunked, chunked, unsaid, true"
            )
        }

        @Test("HEAD, 204 and 304 get no content, whatever the body says (A8)")
        func bodiless() {
            #expect(Self.shape(Self.plan(200, .none, method: .head)) == "unsaid, none, unsaid, true")
            #expect(Self.shape(Self.plan(200, .five, method: .head)) == "length(5), none, unsaid, true")
            #expect(
                Self.shape(Self.plan(200, .none, fields: ["Content-Length": "9"], method: .head))
                    == "length(9), none, unsaid, true"
            )
            #expect(Self.shape(Self.plan(204, .five, fields: ["Content-Length": "9"])) == "unsaid, none, unsaid, true")
            #expect(
                Self.shape(Self.plan(304, .five, fields: ["Content-Length": "9"])) == "length(9), none, unsaid, true"
            )
            #expect(Self.shape(Self.plan(304, .five)) == "unsaid, none, unsaid, true")
            #expect(Self.shape(Self.plan(200, .five, method: .connect)) == "unsaid, none, close, false")
        }

        @Test("HTTP/1.0 gets no chunks, and keep-alive only if it asked for it")
        func http10() {
            #expect(Self.shape(Self.plan(200, .stream, version: .http10)) == "unsaid, until close, close, false")
            #expect(Self.shape(Self.plan(200, .five, version: .http10)) == "length(5), bytes 5, keepAlive, true")
            #expect(
                Self.shape(Self.plan(200, .five, version: .http10, keepsAlive: false))
                    == "length(5), bytes 5, close, false"
            )
        }

        @Test("The connection is closed if either side wants it or the response says so")
        func closing() {
            #expect(!Self.plan(200, .five, keepsAlive: false).keepsAlive)
            #expect(!Self.plan(200, .five, fields: ["Connection": "x, Close"]).keepsAlive)
            #expect(Self.plan(200, .five, fields: ["Connection": "x, closed"]).keepsAlive)
        }

        @Test(
            "Every final status is sent as it is (A4); any other is a mistake of the handler"
        )
        func statuses() {
            for status in [200, 299, 304, 404, 599, 700, 999] {
                #expect(Self.plan(StatusCode(status), .five).status.rawValue == status)
            }
            for status in [-1, 0, 99, 100, 103, 199, 1000] {
                #expect(Self.plan(StatusCode(status), .five).status == 500)
            }
        }
    }
#endif
