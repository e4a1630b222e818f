// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("Credentials in fields that are shown")
    struct FieldMaskTests {
        @Test(
            "Fields that hold credentials are hidden, however they are spelled",
            arguments: [
                "Authorization", "proxy-authorization", "COOKIE", "Set-Cookie", "Set-Cookie2", "Authentication-Info",
                "X-Auth-Token",
                "X-Api-Key", "x-apikey", "X-Amz-Security-Token", "X-Session-Id", "X-Password", "X-Client-Secret",
                "Signature", "X-JWT", "X-Pwd", "X-Sid", "X-Auth", "X-Bearer", "X-CSRF", "X-OTP", "Access-Key",
                "X-XSRF-Value",
            ]
        )
        func hidden(name: String) throws {
            #expect(FieldMask.shown("geheim", of: try #require(FieldName(name))) == nil)
        }

        @Test(
            "Other fields are shown, and URLs in them without parts that may be secret",
            arguments: [
                ("Content-Type", "text/html", "text/html"), ("ETag", "\"a\"", "\"a\""), ("X-Note", "<b>&", "<b>&"),
                ("X-Author", "me", "me"),
                ("X-Monkey", "a", "a"),
                ("Location", "/a?key=geheim", "/a?key=REDACTED"),
                ("Location", "http://u:p@a.example/#x", "http://a.example/"),
                ("Link", "</a>; rel=next", "</a>; rel=next"), ("Link", "</a?key=geheim>; rel=next", nil),
                ("Location", "", nil),
            ] as [(String, String, String?)]
        )
        func shown(name: String, value: String, expected: String?) throws {
            #expect(FieldMask.shown(value, of: try #require(FieldName(name))) == expected)
        }

        @Test("A long value is cut")
        func long() {
            let shown = FieldMask.shown(String(repeating: "x", count: 100_000), of: "X-Note")
            #expect(shown?.count == FieldMask.longestValue + 1)
        }
    }
#endif
