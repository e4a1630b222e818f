// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

@Suite("Paths of a proxy", .timeLimit(.minutes(20)))
struct ProxyPathTests {
    @Test(
        "E-T1, E-T2: a path is appended to the base, with one slash between them",
        arguments: [
            ("https://h/api/", "a/b", "https://h/api/a/b"),
            ("https://h/api", "a", "https://h/api/a"),
            ("https://h", "a/b/", "https://h/a/b/"),
            ("http://h:8080/", "a", "http://h:8080/a"),
            ("HTTPS://h/api", "a", "https://h/api/a"),
            ("https://h/a%2Fb/", "c", "https://h/a%2Fb/c"),
            ("https://h/api/?key=1", "a", "https://h/api/a?key=1"),
            ("https://h/api#part", "a", "https://h/api/a"),
        ]
    )
    func joins(base: String, path: String, sent: String) async throws {
        let scripted = try ScriptedProxy(base: base)
        try await scripted.proxy.invoke(.get, path: path)
        #expect(scripted.urls == [sent])
    }

    @Test("E-T3: a leading slash stays below the base")
    func leadingSlash() async throws {
        let scripted = try ScriptedProxy()
        try await scripted.proxy.invoke(.get, path: "/a")
        #expect(scripted.urls == ["https://h/api/a"])
    }

    @Test(
        "E-T3: a path that is itself a URL, or that parsers read differently, is refused and nothing is sent",
        arguments: [
            "https://evil/x", "HTTP:x", "http:", "  https://evil/x", "//evil/x", "///evil", "file:///etc/passwd",
            "javascript:alert(1)", "x+y-z.1:a", "\\\\evil\\x", "/\\evil", "a\\..\\b", "a\r\nHost: evil", "a\tb",
            "a\u{0}",
        ]
    )
    func refused(path: String) async throws {
        let scripted = try ScriptedProxy()
        let error = await #expect(throws: WebServiceError.self) {
            try await scripted.proxy.invoke(.get, path: path)
        }
        #expect(error?.statusCode == 0)
        #expect(error?.response == nil)
        #expect(scripted.transport.sent.isEmpty)
    }

    @Test(
        "A base URL of another scheme, or without a host, is refused",
        arguments: ["ftp://h/", "h/api", "https:///api"]
    )
    func refusedBase(base: String) async throws {
        let scripted = try ScriptedProxy(base: base)
        let error = await #expect(throws: WebServiceError.self) {
            try await scripted.proxy.invoke(.get, path: "a")
        }
        #expect(error?.statusCode == 0)
        #expect(scripted.transport.sent.isEmpty)
    }

    @Test(
        "A colon is fine after the first segment, after a dot, and after what is not a scheme",
        arguments: [
            ("items/1:cancel", "items/1:cancel"), ("./items:batch", "items:batch"), ("1:2", "1:2"), ("/a:b", "a:b"),
        ]
    )
    func colons(path: String, sent: String) async throws {
        let scripted = try ScriptedProxy()
        try await scripted.proxy.invoke(.get, path: path)
        #expect(scripted.urls == ["https://h/api/" + sent])
    }

    @Test(
        "E-T4: a query in the path is kept and extended",
        arguments: [
            ("https://h/", "a?x=1", "https://h/a?x=1&y=2"), ("https://h/", "a?", "https://h/a?y=2"),
            ("https://h/", "?x=1", "https://h/?x=1&y=2"), ("https://h/?k=0", "a?x=1", "https://h/a?k=0&x=1&y=2"),
            ("https://h/", "a?x=/?:@%20 +é#1", "https://h/a?x=/?:@%20%20+%C3%A9%231&y=2"),
            ("https://h/", "a?x=\\|", "https://h/a?x=%5C%7C&y=2"),
        ]
    )
    func queries(base: String, path: String, sent: String) async throws {
        let scripted = try ScriptedProxy(base: base)
        try await scripted.proxy.invoke(.get, path: path, arguments: ["y": 2])
        #expect(scripted.urls == [sent])
    }

    @Test(
        "E-T5: the empty path is the base itself",
        arguments: ["https://h/api", "https://h/api/", "https://h/api?k=1"]
    )
    func emptyPath(base: String) async throws {
        let scripted = try ScriptedProxy([.respond(), .respond()], base: base)
        try await scripted.proxy.invoke(.get, path: "")
        try await scripted.proxy.invoke(.get, path: "", arguments: ["y": 2])
        #expect(scripted.urls == [base, base + (base.contains("?") ? "&y=2" : "?y=2")])
    }

    @Test(
        "Percent escapes in a path are kept, and characters that a path cannot have are escaped",
        arguments: [
            ("a%2Fb/%41", "a%2Fb/%41"), ("a b", "a%20b"), ("é", "%C3%A9"), ("100%", "100%25"), ("%zz%4", "%25zz%254"),
            ("a#b", "a%23b"), ("a#\u{301}?x=1", "a%23%CC%81?x=1"), ("a?\u{301}", "a?%CC%81"),
            ("a?\u{301}/../..", "a?%CC%81/../.."), ("a//b", "a//b"),
            ("!$&'()*+,;=:@", "./!$&'()*+,;=:@"), ("<>\"{}|^`[]", "%3C%3E%22%7B%7D%7C%5E%60%5B%5D"),
        ]
    )
    func escapes(path: String, sent: String) async throws {
        let scripted = try ScriptedProxy()
        try await scripted.proxy.invoke(.get, path: path)
        #expect(scripted.urls == ["https://h/api/" + sent.drop { $0 == "." || $0 == "/" }])
    }

    @Test(
        "Dot segments are resolved below the base",
        arguments: [
            ("./a", "a"), ("a/./b", "a/b"), ("a/../b", "b"), ("a/..", ""), ("a/b/..", "a/"), ("a/.", "a/"), (".", ""),
            ("a/%2E%2e/b", "b"), ("a//../b", "a/b"), ("...", "..."), ("a..b/..c", "a..b/..c"),
        ]
    )
    func dots(path: String, sent: String) async throws {
        let scripted = try ScriptedProxy()
        try await scripted.proxy.invoke(.get, path: path)
        #expect(scripted.urls == ["https://h/api/" + sent])
    }

    @Test(
        "Dot segments that lead above the base are refused, also those that only some servers recognize",
        arguments: [
            "..", "../x", "/../x", "a/../../x", "%2e%2E/x", ".%2e/x", "a/..%2f..%2f..%2fx", "..%5Cx", "a/..;/..;x=1/b",
        ]
    )
    func climbing(path: String) async throws {
        let scripted = try ScriptedProxy()
        let error = await #expect(throws: WebServiceError.self) {
            try await scripted.proxy.invoke(.get, path: path)
        }
        #expect(error?.statusCode == 0)
        #expect(scripted.transport.sent.isEmpty)
    }

    @Test("A refusal quotes nothing of the path, which may hold a credential")
    func discretion() async throws {
        let scripted = try ScriptedProxy()
        let error = await #expect(throws: WebServiceError.self) {
            try await scripted.proxy.invoke(.get, path: "https://user:secret@h/?token=secret")
        }
        #expect(error?.localizedDescription.isEmpty == false)
        #expect(error?.description.hasPrefix("GET https://h/api/: status 0: The path is a complete URL") == true)
        #expect(error?.description.contains("secret") == false)
    }
}
