// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

@Suite struct RedactedURLTests {
    @Test(
        "What is printed",
        arguments: [
            ("https://example.com/a/b", "https://example.com/a/b"),
            ("https://user:pa%40ss@example.com:8443/a", "https://example.com:8443/a"),
            ("https://example.com/a?q=1&token=x#frag", "https://example.com/a?q=REDACTED&token=REDACTED"),
            ("https://example.com/a?secret", "https://example.com/a?REDACTED"),
            ("https://example.com/a?=secret&b=", "https://example.com/a?REDACTED&b=REDACTED"),
            ("https://example.com?a=b=c?d", "https://example.com?a=REDACTED"),
            ("https://example.com/a;jsessionid=1/b", "https://example.com/a;REDACTED/b"),
            ("data:text/plain,secret", "data:REDACTED"),
            ("mailto:a@example.com", "mailto:REDACTED"),
            ("/a/b?c=d", "/a/b?c=REDACTED"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("//token@example.com/a", "REDACTED"),
        ]
    )
    func text(url: String, expected: String) throws {
        let redacted = RedactedURL(try #require(URL(string: url)))
        #expect(redacted.description == expected)
        #expect("\(redacted)" == expected)
        #expect(String(reflecting: redacted) == expected)
    }

    @Test("Values of the named arguments are shown, and no others")
    func shown() throws {
        let redacted = RedactedURL(try #require(URL(string: "https://example.com/?page=2&pages=3&token=x")))
        let expected = "https://example.com/?page=2&pages=REDACTED&token=REDACTED"
        #expect(redacted.text(showing: ["page"]) == expected)
    }

    @Test("A shown value that holds further arguments is hidden", arguments: ["1;token=x", "1%3Bt=x", "1%26t=x"])
    func furtherArguments(value: String) throws {
        let redacted = RedactedURL(try #require(URL(string: "https://example.com/?page=2&page=\(value)")))
        #expect(redacted.text(showing: ["page"]) == "https://example.com/?page=2&page=REDACTED")
    }

    @Test("A part without a name is never shown, also among arguments beyond the limit")
    func nameless() throws {
        let many = String(repeating: "a=1&", count: 63)
        let redacted = RedactedURL(try #require(URL(string: "https://example.com/?\(many)s3cr3t&b=1")))
        #expect(!redacted.description.contains("s3cr3t"))
    }

    @Test("Host, port and path")
    func parts() throws {
        let redacted = RedactedURL(try #require(URL(string: "HTTPS://u:p@Example.COM/a;s=1/b?c=d")))
        #expect(redacted.scheme == "https")
        #expect(redacted.host == "example.com")
        #expect(redacted.port == 443)
        #expect(redacted.path == "/a;REDACTED/b")
    }

    @Test("A secret in user, password, values, fragment or parameters never appears in any form of the URL")
    func fuzz() {
        let seed: UInt64 = 0x0B5E_07E5
        var generator = SeededGenerator(seed: seed)
        let marker = "s3cr3tMark"
        let places = ["\(marker)@", "u:\(marker)@", "\(marker):\(marker)@", "a@\(marker)@", ""]
        let paths = ["", "/", "/a", "/a;\(marker)/b", "/a;s=\(marker)", "//x/;\(marker)"]
        let queries = [
            "", "?\(marker)", "?a=\(marker)", "?=\(marker)", "?a&b=\(marker)", "?a=1&&c=\(marker)?\(marker)",
        ]
        let fragments = ["", "#\(marker)", "#a?b=\(marker)", "#@\(marker)"]
        for _ in 0..<500 {
            let texts = [places, paths, queries, fragments].map { $0.randomElement(using: &generator) ?? "" }
            let text = "https://" + texts[0] + "example.com" + texts[1...].joined()
            guard let url = URL(string: text) else { continue }
            let redacted = RedactedURL(url)
            var dumped = ""
            dump(redacted, to: &dumped)
            let all = "\(redacted) \(String(reflecting: redacted)) \(redacted.path) \(dumped) \([redacted])"
            #expect(!all.contains(marker), "seed \(seed): \(text)")
        }
    }
}
