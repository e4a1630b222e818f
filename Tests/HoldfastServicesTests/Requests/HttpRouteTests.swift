// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import Testing

@Suite("HttpRoute", .timeLimit(.minutes(20)))
struct HttpRouteTests {
    private func path(_ route: HttpRoute) throws -> String {
        try route.encodedSegments.joined(separator: "/")
    }

    @Test("Segments are text, numbers, identifiers and optionals of them")
    func kinds() throws {
        let number = 7
        let maybe: Int? = 8
        let uuid = try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        let segments: [any CustomStringConvertible & Sendable] = ["a", number]
        #expect(try path(["users", number, maybe, uuid, "x"]) == "users/7/8/\(uuid.uuidString)/x")
        #expect(try path(HttpRoute(segments)) == "a/7")
        #expect(try path([]) == "")
        #expect(HttpRoute().isEmpty)
    }

    @Test("A segment stays one segment, whatever its text")
    func encoding() throws {
        #expect(
            try path(["a/b", "c?d#e", "%20", "é ö", "..;x=1,2", "..a", "a..", "..."])
                == "a%2Fb/c%3Fd%23e/%2520/%C3%A9%20%C3%B6/..%3Bx=1,2/..a/a../..."
        )
    }

    @Test(
        "A segment that would name another place is refused",
        arguments: [
            [".."], ["."], ["a", "..", "b"], ["a", ""], ["", "a"], ["a", nil], HttpRoute(path: "a/../b"),
            HttpRoute(path: "./a"), HttpRoute(path: ".."),
        ] as [HttpRoute]
    )
    func refused(route: HttpRoute) {
        let error = #expect(throws: ServiceError.self) { try route.encodedSegments }
        #expect(error?.code == .badRequest)
        #expect(error?.progress == .notSent)
    }

    @Test(
        "D-T1, D-T3: a path from text",
        arguments: [
            ("status", "status"), ("/a/b", "a/b"), ("//a", "a"), ("a/", "a/"), ("a//b", "a//b"), ("", ""), ("/", ""),
            ("a?x", "a%3Fx"), ("a b", "a%20b"), ("a%20b", "a%2520b"),
        ]
    )
    func byText(text: String, encoded: String) throws {
        #expect(try path(HttpRoute(path: text)) == encoded)
    }

    @Test("S23: routes are joined with one slash between them")
    func concatenation() throws {
        #expect(try path(["a"] + ["b", 1]) == "a/b/1")
        #expect(try path(HttpRoute(path: "a/") + ["b"]) == "a/b")
        #expect(try path(HttpRoute(path: "a/") + []) == "a/")
        #expect(try path([] + HttpRoute(path: "b/")) == "b/")
    }
}
