// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct QueryOptionsTests {
    @Test("Vector group query_options", arguments: VectorFile.canonical?.queryOptions.vectors ?? [])
    func vectors(vector: QueryVector) throws {
        let key = vector.queryOptions.applied(to: try TargetURI(vector.input))
        #expect(key.canonical == vector.canonical)
    }

    @Test(
        "CACHING.md §4.1 rule 12: more queries",
        arguments: [
            ("b&&a", QueryOptions(sortsNames: true), "?&a&b"), ("&", QueryOptions(sortsNames: true), "?&"),
            ("a%62=1&ab=2&AB", QueryOptions(sortsNames: true), "?AB&ab=1&ab=2"),
            ("b=1&%61=2", QueryOptions(sortsNames: true), "?a=2&b=1"),
            ("a%26=1&a=2", QueryOptions(sortsNames: true), "?a=2&a%26=1"),
            ("a;b=1&a=2", QueryOptions(ignoredNames: ["a"]), "?a;b=1"),
            ("%E9=1&x", QueryOptions(ignoredNames: ["\u{FFFD}"]), "?x"),
            ("%C3%A9=1&e%CC%81=2", QueryOptions(ignoredNames: ["\u{E9}"]), "?e%CC%81=2"),
            ("a%3Db=1&a=1", QueryOptions(ignoredNames: ["a=b"]), "?a=1"),
            ("a=1&b=2&b", QueryOptions(allowedNames: ["b"]), "?b=2&b"),
            ("utm_a&utm_b&x", QueryOptions(ignoredNames: ["utm_b"], allowedNames: ["utm_*"]), "?utm_a"),
            ("a&b", QueryOptions(ignoredNames: ["*"]), ""), ("A=1", QueryOptions(ignoredNames: ["a"]), "?A=1"),
            ("a=%2b+%20", QueryOptions(sortsNames: true), "?a=%2B+%20"),
            ("", QueryOptions(), "?"), ("", QueryOptions(allowedNames: []), ""),
        ]
    )
    func furtherQueries(query: String, options: QueryOptions, expected: String) throws {
        let key = options.applied(to: try TargetURI("http://h/p?\(query)"))
        #expect(key.canonical == "http://h/p" + expected)
    }

    @Test("The rest of the URI is unchanged, including userinfo")
    func restStays() throws {
        let uri = try TargetURI("https://u%40:p@[::1]:8443/a%2Fb?z&y#f")
        let key = QueryOptions(sortsNames: true).applied(to: uri)
        #expect(key.canonical == "https://[::1]:8443/a%2Fb?y&z")
        #expect(key.userinfo == "u%40:p")
        #expect(QueryOptions().isEmpty && !QueryOptions(allowedNames: []).isEmpty)
    }

    @Test("Applying it twice equals applying it once, and only ignored pieces are dropped", arguments: FuzzRounds.seeds)
    func idempotence(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let pieces = ["a", "b", "=", "&", "&", "+", "%20", "%61", "%C3%A9", "%F6", "%26", "utm_", "ü"]
        let choices = [
            QueryOptions(sortsNames: true), QueryOptions(ignoredNames: ["a", "utm_*"]),
            QueryOptions(sortsNames: true, ignoredNames: ["b"], allowedNames: ["a*", "b", ""]),
        ]
        for _ in 0..<FuzzRounds.of(300) {
            let text = "http://h/?" + source.text(from: pieces, upTo: 16)
            guard let uri = try? TargetURI(mapping: text) else { continue }
            for options in choices {
                let key = options.applied(to: uri)
                #expect(options.applied(to: key).canonical == key.canonical, "\(text)")
            }
            let sorted = choices[0].applied(to: uri).query ?? ""
            #expect(sorted.split(separator: "&").sorted() == (uri.query ?? "").split(separator: "&").sorted())
        }
    }
}
