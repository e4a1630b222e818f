// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import HoldfastServices

@Suite("ServiceURL", .timeLimit(.minutes(20)))
struct ServiceURLTests {
    private struct Case: Sendable, CustomTestStringConvertible {
        let base: String
        let route: HttpRoute
        let query: HttpQuery
        let url: String

        init(_ base: String, is url: String, _ route: HttpRoute = [], _ query: HttpQuery = [:]) {
            self.base = base
            self.route = route
            self.query = query
            self.url = url
        }

        var testDescription: String { base }
    }

    @Test(
        "S-T38, D-T1: a request's own scheme overrides the base's, and the rest of the base stays",
        arguments: [
            Case("api.example.com", is: "https://api.example.com/a", ["a"]),
            Case("http://api.example.com/", is: "https://api.example.com/a", ["a"]),
            Case("HTTP://api.example.com/v1", is: "https://api.example.com/v1/a/b?q=1", ["a", "b"], ["q": 1]),
            Case("//api.example.com/v1/", is: "https://api.example.com/v1/a", ["a"]),
            Case("api.example.com/v1/", is: "https://api.example.com/v1/"),
            Case("api.example.com/v1;m=1/", is: "https://api.example.com/v1;m=1/a", ["a"]),
            Case("api.example.com/v1", is: "https://api.example.com/v1"),
            Case("api.example.com", is: "https://api.example.com"),
            Case("api.example.com", is: "https://api.example.com?q=1", [], ["q": 1]),
            Case("api.example.com/v2?key=1", is: "https://api.example.com/v2/a?key=1&b=2", ["a"], ["b": 2]),
            Case("api.example.com/a?\u{301}", is: "https://api.example.com/a?%CC%81&y=1", [], ["y": 1]),
            Case("api.example.com/v2?", is: "https://api.example.com/v2/a", ["a"]),
            Case(
                "api.example.com/p?next=http://x.example/y?z",
                is: "https://api.example.com/p/a?next=http://x.example/y?z",
                ["a"]
            ),
            Case(
                "http://api.example.com/p?next=http://x.example",
                is: "https://api.example.com/p?next=http://x.example"
            ),
            Case("api.example.com/v1#part?x", is: "https://api.example.com/v1/a", ["a"]),
            Case("api.example.com?x=1#part", is: "https://api.example.com/a?x=1", ["a"]),
            Case("localhost:8080", is: "https://localhost:8080/a", ["a"]),
            Case("127.0.0.1:80/x", is: "https://127.0.0.1:80/x/a", ["a"]),
            Case("[::1]:8080/x", is: "https://[::1]:8080/x/a", ["a"]),
            Case("http://[2001:db8::1]", is: "https://[2001:db8::1]/a", ["a"]),
            Case("user:secret@api.example.com", is: "https://user:secret@api.example.com/a", ["a"]),
            Case(
                "api.example.com/a b/é%20%zz?t=x y&u[]=1",
                is: "https://api.example.com/a%20b/%C3%A9%20%25zz/c?t=x%20y&u%5B%5D=1",
                ["c"]
            ),
            Case("api.example.com/v1", is: "https://api.example.com/v1/a//b/", HttpRoute(path: "/a//b/")),
        ]
    )
    private func made(given: Case) throws {
        let url = try ServiceURL.make(
            base: given.base,
            isSecure: true,
            isSecureByDefault: false,
            route: given.route,
            query: given.query
        )
        #expect(url.absoluteString == given.url)
    }

    @Test(
        "A base without a host is refused, without showing user or query, which may hold a credential",
        arguments: [
            "", "https://", "/v1", "?key=SECRET", "#x", "user:SECRET@", "file:///etc/passwd",
            "u:SECRET@a b.example/x?k=SECRET",
            "api.example.com\\@evil.example", "api.example.com\n", "api%2Eexample.com", "a_b@", "[::1/x?SECRET",
            "h:99999", "user:SECRET@a%20b", "api.example.com:port/x", "https://user:SECRET/x@api.example.com/v1",
            "user:SECRET?x@h.example", "user:SECRET#x@h.example",
        ]
    )
    func refused(base: String) {
        let error = #expect(throws: ServiceError.self) {
            try ServiceURL.make(base: base, isSecure: nil, isSecureByDefault: true, route: ["a"], query: [:])
        }
        #expect(error?.code == .badRequest)
        #expect(error?.progress == .notSent)
        #expect(error.map { String(describing: $0) }?.contains("SECRET") == false)
    }

    @Test("A refused base is quoted with its scheme", arguments: ["http://", "//", "http://a b.example/x", "a b"])
    func quoted(base: String) {
        let error = #expect(throws: ServiceError.self) {
            try ServiceURL.make(base: base, isSecure: nil, isSecureByDefault: true, route: ["a"], query: [:])
        }
        #expect(error?.message.hasPrefix("\"\(base)\" names no host") == true)
    }

    @Test(
        "A scheme in the base decides if the request has none of its own",
        arguments: [
            ("http://h.example", true, "http://h.example/a"), ("HTTP://h.example", true, "http://h.example/a"),
            ("https://h.example", false, "https://h.example/a"), ("h.example", true, "https://h.example/a"),
            ("h.example", false, "http://h.example/a"), ("//h.example", true, "https://h.example/a"),
            ("ws://h.example", true, "http://h.example/a"), ("wss://h.example", false, "https://h.example/a"),
            ("http:80", true, "https://http:80/a"), ("gopher://h.example", true, "https://h.example/a"),
            ("h.example/?to=http://x.example", true, "https://h.example/a?to=http://x.example"),
        ]
    )
    func scheme(base: String, isSecureByDefault: Bool, expected: String) throws {
        let url = try ServiceURL.make(
            base: base,
            isSecure: nil,
            isSecureByDefault: isSecureByDefault,
            route: ["a"],
            query: [:]
        )
        #expect(url.absoluteString == expected)
    }

    @Test("A URL, URLComponents or parts of text name a URL")
    func convertible() throws {
        var components = URLComponents()
        components.scheme = "https"
        components.host = "api.example.com"
        components.path = "/v1"
        let url = try #require(URL(string: "v1", relativeTo: URL(string: "https://api.example.com/")))
        let all: [any UrlConvertible] = [
            components, url, "https://api.example.com/v1"[...], "https://api.example.com/v1",
        ]
        for one in all { #expect(one.urlText == "https://api.example.com/v1") }
    }
}
