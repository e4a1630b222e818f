// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct CacheGroupsTests {
    @Test(
        "RFC 9875 §2: a List of Strings, or nothing",
        arguments: [
            (#""a", "B c""#, ["a", "B c"]), (#""a";p=1, "b";q"#, ["a", "b"]), (#""a", "a""#, ["a"]), (#""""#, [""]),
            ("", []),
            (#""a", b"#, []), (#""a", 1"#, []), (#""a", ("b")"#, []), (#"("a")"#, []), (#""a","#, []), ("a", []),
            (#""a" "b""#, []), (#"%"a""#, []), (#""open"#, []),
        ]
    )
    func names(value: String, expected: [String]) throws {
        #expect(CacheGroups(["Cache-Groups": value] as HeaderFields).names == expected)
        let invalidated = CacheGroups.invalidated(
            request: RequestHead(method: .post, target: try target()),
            response: ResponseHead(status: 200, fields: ["Cache-Group-Invalidation": value])
        )
        #expect(invalidated.names == expected && invalidated.isEmpty == expected.isEmpty)
    }

    @Test("RFC 9875 §2: the lines form one list, and each field counts on its own")
    func lines() {
        let fields: HeaderFields = [
            "Cache-Groups": #""a""#, "cache-groups": #""b""#, "Cache-Group-Invalidation": #""c""#,
        ]
        #expect(CacheGroups(fields).names == ["a", "b"])
        #expect(CacheGroups([:] as HeaderFields).isEmpty)
    }

    @Test("RFC 9875 §2: at least 32 groups of 32 characters are read, and no more than the limits")
    func limits() {
        func field(_ names: [String]) -> HeaderFields {
            ["Cache-Groups": names.map { "\"\($0)\"" }.joined(separator: ",")]
        }
        func name(_ number: Int, length: Int) -> String {
            String(number) + String(repeating: "x", count: length - String(number).count)
        }
        let least = (0..<32).map { name($0, length: 32) }
        #expect(CacheGroups(field(least)).names == least)
        let most = (0..<CacheGroups.maximumCount).map { name($0, length: CacheGroups.maximumLength) }
        #expect(CacheGroups(field(most)).names == most)
        #expect(CacheGroups(field(most + ["more"])).names == most)
        #expect(CacheGroups(field([name(1, length: CacheGroups.maximumLength + 1), "a"])).names == ["a"])
    }

    @Test(
        "RFC 9875 §3: only an unsafe request that did not fail invalidates",
        arguments: [
            ("POST", 200, true), ("DELETE", 204, true), ("PUT", 302, true), ("ODD", 200, true), ("GET", 200, false),
            ("HEAD", 200, false), ("OPTIONS", 200, false), ("QUERY", 200, false), ("POST", 400, false),
            ("POST", 503, false),
        ]
    )
    func invalidation(method: String, status: Int, expected: Bool) throws {
        let groups = CacheGroups.invalidated(
            request: RequestHead(method: RequestMethod(rawValue: method), target: try target()),
            response: ResponseHead(status: StatusCode(status), fields: ["Cache-Group-Invalidation": #""a""#])
        )
        #expect(groups.isEmpty != expected)
    }
}
