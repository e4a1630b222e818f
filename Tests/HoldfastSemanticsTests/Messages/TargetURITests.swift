// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSemantics

@Suite struct TargetURITests {
    @Test("Vector group uri", arguments: VectorFile.canonical?.uri.vectors ?? [])
    func uriVectors(vector: URIVector) throws {
        if let canonical = vector.canonical {
            let uri = try TargetURI(vector.input)
            #expect(uri.canonical == canonical)
            if let hasUserinfo = vector.userinfo { #expect((uri.userinfo != nil) == hasUserinfo) }
            return
        }
        let rejection = #expect(throws: TargetURI.Rejection.self) { try TargetURI(vector.input) }
        if let rejection, rejection.reason != .noAuthority {
            #expect(rejection.reason.rawValue == vector.reject)
        }
    }

    @Test("Vector group iri_mapping", arguments: VectorFile.canonical?.iriMapping.vectors ?? [])
    func mappingVectors(vector: URIVector) throws {
        let mapped = try? TargetURI(mapping: vector.input)
        #expect(mapped?.canonical == vector.canonical)
    }

    @Test("Vector group must_equal", arguments: VectorFile.canonical?.mustEqual.vectors ?? [])
    func mustEqual(pair: [String]) throws {
        #expect(try TargetURI(pair[0]) == TargetURI(pair[1]))
    }

    @Test(
        "Vector groups must_differ and may_merge: the strict profile keeps the URIs apart",
        arguments: (VectorFile.canonical?.mustDiffer.vectors ?? []) + (VectorFile.canonical?.mayMerge.vectors ?? [])
    )
    func mustDiffer(pair: [String]) throws {
        #expect(try TargetURI(pair[0]) != TargetURI(pair[1]))
    }

    @Test(
        "RFC 3986 §6.2: more canonical forms",
        arguments: [
            ("https://EXAMPLE.com/", "https://example.com/"), ("hTtPs://h", "https://h/"),
            ("https://example.com:443/", "https://example.com/"),
            ("http://example.com:443/", "http://example.com:443/"),
            ("http://h:00080/", "http://h/"), ("http://h:65535/", "http://h:65535/"), ("http://h:0/", "http://h:0/"),
            ("http://h?", "http://h/?"), ("http://h?a#b", "http://h/?a"), ("http://h#", "http://h/"),
            ("http://h/%2d%2E%5f%7e", "http://h/-._~"), ("http://h/%00", "http://h/%00"),
            ("http://h/%25", "http://h/%25"),
            ("http://%48ost/", "http://host/"), ("http://a%2eb/", "http://a.b/"), ("http://h/a/..", "http://h/"),
            ("http://h/a/b/..", "http://h/a/"), ("http://h/a/b/.", "http://h/a/b/"), ("http://h/./a", "http://h/a"),
            ("http://h/.../a", "http://h/.../a"), ("http://h/..%2fa", "http://h/..%2Fa"),
            ("http://h//a", "http://h//a"),
            ("http://h/a//b", "http://h/a//b"), ("http://h//..", "http://h/"), ("http://h/a/%2e%2e", "http://h/"),
            ("http://h/mid/content=5/../6", "http://h/mid/6"), ("http://h/?a/../b", "http://h/?a/../b"),
            ("http://h/?a+b&&;", "http://h/?a+b&&;"), ("http://0x7f.1/", "http://0x7f.1/"),
            ("http://[::]/", "http://[::]/"),
            ("http://[V1.A:B]:80/", "http://[v1.a:b]/"), ("http://[1:2:3:4:5:6:7:8]:8/", "http://[1:2:3:4:5:6:7:8]:8/"),
            ("http://[1:2:3:4:5:6:1.2.3.4]/", "http://[1:2:3:4:5:6:1.2.3.4]/"), ("http://[1::]/", "http://[1::]/"),
            ("http://u:p%40@h/", "http://h/"),
        ]
    )
    func furtherForms(input: String, canonical: String) throws {
        #expect(try TargetURI(input).canonical == canonical)
    }

    @Test(
        "RFC 3986 Appendix A: texts that are refused, and why",
        arguments: [
            ("//h/a", "not-absolute"), ("h/a", "not-absolute"), ("?a", "not-absolute"), ("#a", "not-absolute"),
            (":a", "not-absolute"), ("h:80/a", "scheme"), ("ws://h/", "scheme"), ("urn:a:b", "scheme"),
            ("http:/a", "no-authority"), ("http:a", "no-authority"), ("http:", "no-authority"),
            ("http://", "empty-host"), ("https://?a", "empty-host"), ("http://u@/", "empty-host"),
            ("http://u@:80/", "empty-host"), ("http://h:8a/", "port"), ("http://h:-1/", "port"),
            ("http://h:80:80/", "port"),
            ("http://h:99999999999999999999/", "port"), ("http://h/%", "percent"), ("http://h/%4", "percent"),
            ("http://h/%4g", "percent"), ("http://h%/", "percent"), ("http://h/?%", "percent"),
            ("http://h/#%", "percent"),
            ("http://u%@h/", "percent"), ("http://h/a b", "character"), ("http://h/\"", "character"),
            ("http://h/<", "character"), ("http://h/\\a", "character"), ("http://h/a|b", "character"),
            ("http://h/[", "character"), ("http://h/?[", "character"), ("http://h/#a#b", "character"),
            ("http://h/é", "character"), ("http://é/", "character"), ("http://a@b@h/", "character"),
            ("http://[::1/", "character"), ("http://[::1]a/", "character"), ("http://[::1::]/", "character"),
            ("http://[:::]/", "character"), ("http://[1:2]/", "character"), ("http://[12345::]/", "character"),
            ("http://[::256.1.1.1]/", "character"), ("http://[1.2.3.4::]/", "character"), ("http://[]/", "character"),
            ("http://[fe80::1%25en0]/", "character"), ("http://[1:2:3:4:5:6:7:8::]/", "character"),
            ("http://[v.a]/", "character"), ("http://h]/", "character"), ("http://h/\u{7F}", "character"),
            ("http://h/\u{0}", "character"), (" http://h/", "scheme"), ("http://h/ ", "character"),
        ]
    )
    func refused(input: String, reason: String) {
        let rejection = #expect(throws: TargetURI.Rejection.self) { try TargetURI(input) }
        #expect(rejection?.reason.rawValue == reason)
        #expect(rejection?.message.isEmpty == false)
    }

    @Test func parts() throws {
        let uri = try TargetURI("HTTPS://User:Pw@Example.COM:8443/a/%7Eb?x=1&y#z")
        #expect(uri.scheme == "https")
        #expect(uri.userinfo == "User:Pw")
        #expect(uri.host == "example.com")
        #expect(uri.port == 8443)
        #expect(uri.path == "/a/~b")
        #expect(uri.query == "x=1&y")
        #expect(uri.origin == "https://example.com:8443")
        #expect(uri.description == "https://example.com:8443/a/~b?x=1&y")
        let plain = try TargetURI("http://@[::1]:80")
        #expect(plain.userinfo == nil && plain.port == nil && plain.query == nil)
        #expect(plain.host == "[::1]" && plain.path == "/" && plain.origin == "http://[::1]")
        #expect(try TargetURI("http://h/?").query == "")
    }

    @Test("Userinfo does not count for identity (RFC 9110 §4.2.4)")
    func identity() throws {
        let one = try TargetURI("http://u@h/a")
        let other = try TargetURI("http://h/a#f")
        #expect(one == other)
        #expect(Set([one, other]).count == 1)
        #expect(one.isSameOrigin(as: try TargetURI("http://h:80/b")))
        #expect(!one.isSameOrigin(as: try TargetURI("https://h/a")))
        #expect(!one.isSameOrigin(as: try TargetURI("http://i/a")))
        #expect(!one.isSameOrigin(as: try TargetURI("http://h:81/a")))
    }

    @Test(
        "RFC 3986 §5.4.1, §5.4.2: the examples of reference resolution",
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"),
            ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("https://i:443/x", "https://i/x"), ("g:h", nil), ("mailto:a@b", nil), ("http:g", nil), ("/a b", nil),
            ("//", nil), ("//u@i/x", "http://i/x"),
        ] as [(String, String?)]
    )
    func resolution(reference: String, expected: String?) throws {
        let base = try TargetURI("http://a/b/c/d;p?q")
        #expect(base.resolving(reference)?.canonical == expected)
    }

    @Test(
        "RFC 3987 §3.1: mapping leaves ASCII in the authority unchanged",
        arguments: [
            ("http://é/", "http://%C3%A9/"), ("http://h/a?b c#d e", "http://h/?"),
            ("http://h/{a}\\", "http://h/%7Ba%7D%5C"),
            ("http://a b/", nil), ("http://evil\\@good/", nil), ("http://h/\n", nil), ("http://h/%zz", nil),
        ] as [(String, String?)]
    )
    func mapping(input: String, expected: String?) {
        let mapped = try? TargetURI(mapping: input)
        if let expected, expected.hasSuffix("?") {
            #expect(mapped?.query == "b%20c")
        } else {
            #expect(mapped?.canonical == expected)
        }
    }

    @Test("Canonical text is its own canonical form", arguments: propertySeeds)
    func idempotence(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let pieces = ["/", "..", ".", "%2e", "%2F", "%7e", "a", "B", "?", "#", ":", "@", ";", "é", "[", "%"]
        var accepted = 0
        for _ in 0..<1000 {
            let text = "http://Ex%41mple.com" + source.text(from: pieces, upTo: 14)
            guard let uri = try? TargetURI(text) else { continue }
            accepted += 1
            let again = try TargetURI(uri.canonical)
            #expect(again == uri, "\(text)")
            #expect(again.userinfo == nil)
            let query = uri.query.map { "?\($0)" } ?? ""
            #expect(uri.origin + uri.path + query == uri.canonical)
            _ = uri.resolving(source.text(from: pieces, upTo: 8))
        }
        #expect(accepted > 20)
    }

    @Test("The one-pass parser finds the same parts as the full parser", arguments: propertySeeds)
    func onePass(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let hosts = ["a", "B", "example", ".", "-", "1", ":", "@", "[::1]", "é", "%41"]
        let pieces = ["/", "..", ".", "%2e", "a", "B", "?", ":", "@", ";", "é", "[", "%", ".well-known", "~", "//"]
        var inOnePass = 0
        for _ in 0..<1000 {
            let scheme = ["http://", "https://", "HTTP://", "ftp://", "http:/"].randomElement(using: &source) ?? ""
            var text = scheme + source.text(from: hosts, upTo: 4) + "/" + source.text(from: pieces, upTo: 10)
            let isKnown = text.withUTF8 { CanonicalForm.layout(ofCanonical: $0) } != nil
            // A fragment belongs to no canonical text, so this one is read in full.
            let full = try? TargetURI(text + "#f")
            let uri = try? TargetURI(text)
            #expect(uri == full, "\(text)")
            #expect(uri?.userinfo == full?.userinfo && uri?.host == full?.host && uri?.port == full?.port, "\(text)")
            #expect(uri?.path == full?.path && uri?.query == full?.query && uri?.origin == full?.origin, "\(text)")
            if isKnown { inOnePass += 1 }
        }
        #expect(inOnePass > 5)
    }

    @Test(
        "A prefix must end at the end of a URI component",
        arguments: [
            ("http://h.example/img", "http://h.example/img", true),
            ("http://h.example/img", "http://h.example/img/1", true),
            ("http://h.example/img", "http://h.example/img?w=2", true),
            ("http://h.example/img", "http://h.example/imgs", false),
            ("http://h.example/img/", "http://h.example/img", false),
            ("http://h.example/img/", "http://h.example/img/1", true), ("http://h.example", "http://h.example/a", true),
            ("http://h.example", "http://h.example/?q", true), ("http://h.example", "http://h.example.org/", false),
            ("http://h.example", "https://h.example/", false), ("http://h.example", "http://h.example:81/", false),
            ("http://H.example:80/%69mg", "http://h.example/img/1", true),
            ("http://h.example/a?w=2", "http://h.example/a?w=2", true),
            ("http://h.example/a?w=2", "http://h.example/a?w=2&h=3", true),
            ("http://h.example/a?w=2", "http://h.example/a?w=20", false),
            ("http://h.example/a?w=/", "http://h.example/a?w=/b", false),
            ("http://h.example/a?", "http://h.example/a", false),
        ]
    )
    func prefixes(prefix: String, uri: String, isPrefix: Bool) throws {
        #expect(try TargetURI(prefix).isPrefix(of: TargetURI(uri).canonical) == isPrefix)
    }
}
