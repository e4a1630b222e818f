// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import HoldfastSemantics

@Suite struct KeyRuleTests {
    @Test(
        "A rule is for its origin and for whole segments of its path",
        arguments: [
            ("https://h.example", "https://h.example/a?q", true), ("https://h.example/", "https://h.example/", true),
            ("https://h.example/api", "https://h.example/api", true),
            ("https://h.example/api", "https://h.example/api/x", true),
            ("https://h.example/api", "https://h.example/apis", false),
            ("https://h.example/api/", "https://h.example/api", false),
            ("https://h.example/api/", "https://h.example/api/x", true),
            ("https://h.example/api", "http://h.example/api", false),
            ("https://h.example:444/", "https://h.example/", false),
            ("https://h.example", "https://h.example.org/", false),
            ("HTTPS://H.example:443/%61pi", "https://h.example/api?x=1", true),
        ]
    )
    func prefixes(prefix: String, uri: String, applies: Bool) throws {
        #expect(try KeyRule(prefix).applies(to: TargetURI(uri)) == applies)
    }

    @Test("The longest prefix wins, and wins alone")
    func longest() throws {
        var options = CacheOptions()
        options.keyRules = [
            try KeyRule("https://h.example/", query: QueryOptions(ignoredNames: ["utm_*"])),
            try KeyRule("https://h.example/api", query: QueryOptions(sortsNames: true)),
            try KeyRule("https://h.example/api/v1/", query: QueryOptions(allowedNames: ["id"])),
        ]
        let query = "?z=1&utm_source=x&id=2"
        func key(_ path: String) throws -> String {
            options.keyTarget(of: try TargetURI("https://h.example\(path)\(query)")).canonical
        }
        #expect(try key("/a") == "https://h.example/a?z=1&id=2")
        #expect(try key("/api/x") == "https://h.example/api/x?id=2&utm_source=x&z=1")
        #expect(try key("/api/v1/x") == "https://h.example/api/v1/x?id=2")
        let elsewhere = try TargetURI("https://other.example/a\(query)")
        #expect(options.keyTarget(of: elsewhere) == elsewhere)
    }

    @Test(
        "A prefix with a query, or that is no http URI, is refused",
        arguments: ["https://h/?", "https://h/a?x", "ftp://h/", "/a"]
    )
    func refused(prefix: String) {
        #expect(throws: TargetURI.Rejection.self) { try KeyRule(prefix) }
    }
}
