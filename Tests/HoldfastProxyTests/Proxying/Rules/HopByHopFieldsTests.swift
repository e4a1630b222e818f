// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("RFC 9110 §7.6.1: hop-by-hop fields")
    struct HopByHopFieldsTests {
        private static let connectionBound = [
            "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
        ]

        private func fields(_ lines: [(String, String)]) -> HeaderFields {
            var fields = HeaderFields()
            for (name, value) in lines { fields.append(rawName: name, value: value) }
            return fields
        }

        @Test("A12, B5: the connection's own fields are not forwarded, in either direction", arguments: connectionBound)
        func dropped(_ name: String) {
            let lines = fields([("X-A", "1"), (name.uppercased(), "x"), (name.lowercased(), "y"), ("X-B", "2")])
            #expect(HopByHopFields.requestFields(lines).map(\.name.rawName) == ["X-A", "X-B"])
            #expect(HopByHopFields.responseFields(lines).map(\.name.rawName) == ["X-A", "X-B"])
        }

        @Test("A12, B5: nor are the fields that Connection names, on any line, in any letter case")
        func named() {
            let lines = fields([
                ("Secret", "1"), ("Connection", "close, sEcret ,, bad name"), ("a", "2"),
                ("connection", "\tB\t,keep-alive"),
                ("b", "3"), ("c", "4"),
            ])
            #expect(HopByHopFields.requestFields(lines).map(\.name.rawName) == ["a", "c"])
            #expect(HopByHopFields.responseFields(lines).map(\.name.rawName) == ["a", "c"])
        }

        @Test("RFC 9110 §7.6.1: Connection cannot remove the fields that caches depend on")
        func spared() {
            let lines = fields([("Connection", "age, cache-control, date, expires, vary"), ("Age", "1"), ("Vary", "x")])
            #expect(HopByHopFields.responseFields(lines).map(\.name.rawName) == ["Age", "Vary"])
            let asked = fields([("Connection", "cache-control"), ("Cache-Control", "no-cache")])
            #expect(HopByHopFields.requestFields(asked).map(\.name.rawName) == ["Cache-Control"])
        }

        @Test("B5: fields that the transport writes itself or that are meant for the proxy do not reach the origin")
        func requestBound() {
            let lines = fields([
                ("Host", "x"), ("Content-Length", "3"), ("Expect", "100-continue"),
                ("Proxy-Authorization", "Basic eA=="),
                ("Authorization", "Basic eA=="), ("Cookie", "a=b"), ("Range", "bytes=-5"), ("Expires", ""),
            ])
            #expect(
                HopByHopFields.requestFields(lines).map(\.name.rawName)
                    == ["Authorization", "Cookie", "Range", "Expires"]
            )
        }

        @Test("A gateway forwards the challenge of a 407")
        func challenge() {
            let lines = fields([("Proxy-Authenticate", "Basic realm=x"), ("Content-Length", "4")])
            #expect(HopByHopFields.responseFields(lines) == lines)
        }
    }
#endif
