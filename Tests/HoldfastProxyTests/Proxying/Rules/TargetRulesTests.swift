// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("TargetRules")
    struct TargetRulesTests {
        private let reverse: TargetRules
        private let forward: TargetRules

        init() throws {
            let origin = try ProxyOrigin("http://Origin.example:80/")
            reverse = TargetRules(role: .reverse(origin), ownHost: "127.0.0.1", ownPort: BoundPort(8080))
            forward = TargetRules(role: .forward(), ownHost: "192.0.2.7", ownPort: BoundPort(8080))
        }

        @Test(
            "B2: a gateway sends path and query as they came, to its own origin",
            arguments: [
                ("/", "/"), ("/a?b=%41c&x=1,2", "/a?b=%41c&x=1,2"), ("/a/../b//c", "/a/../b//c"), ("*", "*"),
                ("http://other.example:99/x?y", "/x?y"), ("HTTP://other.example", "/"),
                ("http://other.example?q", "/?q"),
                ("/\u{E9}|x", "/\u{E9}|x"), ("/a[1]?f[x]=|%", "/a[1]?f[x]=|%"), ("/%zz%2", "/%zz%2"),
            ]
        )
        func gateway(_ target: String, _ sent: String) throws {
            let head = try reverse.head(.get, target: target)
            #expect(head.requestTarget == sent)
            #expect(head.target.origin == "http://origin.example")
        }

        @Test(
            "RFC 9112 §3.2.2: a forward proxy sends to the host that the target names",
            arguments: [
                ("http://a.example/x?y", "http://a.example", "/x?y"),
                ("http://A.Example:8081", "http://a.example:8081", "/"),
                ("http://a.example?q", "http://a.example", "/?q"),
                ("http://[2001:db8::1]:81/", "http://[2001:db8::1]:81", "/"),
                ("http://127.0.0.1:9/x", "http://127.0.0.1:9", "/x"),
            ]
        )
        func absolute(_ target: String, _ origin: String, _ sent: String) throws {
            let head = try forward.head(.get, target: target)
            #expect(head.requestTarget == sent)
            #expect(head.target.origin == origin)
        }

        @Test("RFC 9112 §3.2.4: OPTIONS for a host without a path becomes OPTIONS *")
        func asterisk() throws {
            #expect(try forward.head(.options, target: "http://a.example").requestTarget == "*")
            #expect(try forward.head(.options, target: "http://a.example/").requestTarget == "/")
        }

        @Test("A3: any method token is forwarded unchanged", arguments: ["M-SEARCH", "get", "x!#$%&'*+-.^_`|~"])
        func methods(_ token: String) throws {
            let method = RequestMethod(rawValue: token)
            #expect(try reverse.head(method, target: "/").method == method)
        }

        @Test(
            "What cannot be sent is refused",
            arguments: [
                ("/a#b", 400), ("a.example:80", 400), ("http://", 400), ("http://user:pw@a.example/", 400),
                ("http://a.example:99999/", 400), ("nothing", 400), ("http:///x", 400),
                ("http://a b/", 400),
            ]
        )
        func refused(_ target: String, _ status: Int) {
            let refusal = #expect(throws: ProxyRefusal.self) { try reverse.head(.get, target: target) }
            #expect(refusal?.status.rawValue == status)
        }

        @Test("RFC 9110 §9.3.6: both kinds of proxy refuse CONNECT")
        func tunnels() {
            for rules in [reverse, forward] {
                let refusal = #expect(throws: ProxyRefusal.self) { try rules.head(.connect, target: "a.example:443") }
                #expect(refusal?.status == .notImplemented)
            }
        }

        @Test(
            "A forward proxy refuses paths, other schemes and itself",
            arguments: [
                ("/x", 400), ("*", 400), ("https://a.example/", 501), ("ftp://a.example/", 400),
                ("http://127.0.0.1:8080/", 508), ("http://127.7.7.7:8080/", 508), ("http://localhost:8080/", 508),
                ("http://x.localhost:8080/", 508), ("http://[::1]:8080/", 508), ("http://192.0.2.7:8080/", 508),
            ]
        )
        func refusedForward(_ target: String, _ status: Int) {
            let refusal = #expect(throws: ProxyRefusal.self) { try forward.head(.get, target: target) }
            #expect(refusal?.status.rawValue == status)
        }
    }
#endif
