// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    import Foundation
    import Holdfast
    @testable import HoldfastObservability
    import Testing

    @Suite struct TextCleanerTests {
        @Test(
            "Texts that hold a credential of another URL are cleaned",
            arguments: [
                ("sent Basic dXNlcjpw and failed", "sent Basic REDACTED and failed"),
                ("Authorization: Bearer abc def", "Authorization: REDACTED"),
                ("Cookie:sid=abc; other=d", "Cookie: REDACTED"),
                ("key=abc page=2 failed", "key=REDACTED page=2 failed"),
                ("page=2&token=s3cr3t page=2;sid=a page=1,page=2", "page=REDACTED page=REDACTED page=1,page=2"),
                ("page=1%3Btoken=s3cr3t page=1%26a=b page=a%20b", "page=REDACTED page=REDACTED page=a%20b"),
                ("cannot load https://u:p@example.com/a?b=c now", "cannot load https://example.com now"),
                ("(url: \"https://example.com/tok\")", "(url: https://example.com"),
                ("eyJabc.def.ghi expired", "REDACTED expired"),
                ("id 0123456789abcdef0123456789abcdef", "id REDACTED"),
                ("a\nb\tc", "a b c"),
                ("The connection broke; send the call again.", "The connection broke; send the call again."),
            ]
        )
        func clean(text: String, expected: String) {
            #expect(TextCleaner(shownArguments: ["page"]).clean(text, of: nil) == expected)
        }

        @Test("Secrets of the call's URL are removed wherever they occur, also decoded; what may be shown stays")
        func secretsOfURL() throws {
            let url = RedactedURL(
                try #require(URL(string: "https://user:pass@example.com/a;s=park/?k=a%20bcd&page=two22#frag"))
            )
            let cleaned = TextCleaner(shownArguments: ["page"])
                .clean("user pass park [a bcd] a%20bcd two22 frag none", of: url)
            let hidden = "REDACTED"
            #expect(cleaned == "\(hidden) \(hidden) \(hidden) [\(hidden)] \(hidden) two22 \(hidden) none")
        }

        @Test("Long texts are cut")
        func long() {
            let text = String(repeating: "word ", count: 1000)
            #expect(TextCleaner(shownArguments: []).clean(text, of: nil).count == TextCleaner.limit + 1)
        }
    }
#endif
