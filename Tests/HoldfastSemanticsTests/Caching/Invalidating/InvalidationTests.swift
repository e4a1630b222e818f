// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct InvalidationTests {
    private func targets(
        _ method: RequestMethod,
        _ status: StatusCode,
        _ fields: HeaderFields = [:]
    ) throws -> [String] {
        Invalidation.targets(
            request: RequestHead(method: method, target: try target("https://h/a?b")),
            response: ResponseHead(status: status, fields: fields)
        ).map(\.canonical)
    }

    @Test(
        "RFC 9111 §4.4: unsafe and unknown methods without an error",
        arguments: [
            ("POST", 200, true), ("PUT", 204, true), ("DELETE", 302, true), ("PATCH", 299, true), ("PURGE", 200, true),
            ("get", 200, true), ("GET", 200, false), ("HEAD", 200, false), ("OPTIONS", 200, false),
            ("QUERY", 200, false),
            ("POST", 400, false), ("POST", 500, false), ("POST", 102, false), ("POST", 600, false),
        ]
    )
    func methods(method: String, status: Int, invalidates: Bool) throws {
        let found = try targets(RequestMethod(rawValue: method), StatusCode(status))
        #expect(found == (invalidates ? ["https://h/a?b"] : []))
    }

    @Test("RFC 9111 §4.4: Location and Content-Location of the same origin")
    func locations() throws {
        let found = try targets(
            .post,
            .created,
            ["Location": "c", "Content-Location": "https://H:443/d", "location": "https://other/e"]
        )
        #expect(found == ["https://h/a?b", "https://h/c", "https://h/d"])
        #expect(try targets(.post, .ok, ["Location": "?b", "Content-Location": "/%zz"]) == ["https://h/a?b"])
        #expect(try targets(.post, .ok, ["Location": "http://h/c", "Content-Location": ""]) == ["https://h/a?b"])
    }

    @Test func manyLinesAreBounded() throws {
        let lines = (0..<100).map { HeaderFields.Line(name: .location, value: "/\($0)") }
        #expect(try targets(.post, .ok, HeaderFields(lines)).count == 8)
    }
}
