// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSemantics

@Suite struct CacheRuleTests {
    @Test(
        "A host pattern is exact or covers all hosts below a domain; scheme and port count if they are given",
        arguments: [
            ("h.example", "https://h.example/a?q", true), ("h.example", "http://h.example:8080/", true),
            ("H.Example", "https://h.example/", true), ("h.example", "https://H.EXAMPLE/", true),
            ("h.example", "https://a.h.example/", false), ("h.example", "https://h.example.org/", false),
            ("h.example", "https://xh.example/", false), ("h.example", "https://h.example./", true),
            ("*.h.example", "https://a.h.example/", true), ("*.h.example", "https://a.b.h.example/", true),
            ("*.h.example", "https://h.example/", false), ("*.h.example", "https://xh.example/", false),
            ("*.h.example", "https://a.h.example./", true), ("*.h.example", "https://a.h.example.org/", false),
            ("*", "http://anything/", true), ("*:8080", "http://anything:8080/", true),
            ("*:8080", "http://anything/", false), ("https://*", "http://anything/", false),
            ("https://h.example", "https://h.example/", true), ("https://h.example", "http://h.example/", false),
            ("https://h.example", "https://h.example:8443/", false),
            ("HTTPS://h.example:443", "https://h.example/", true), ("h.example:443", "https://h.example/", true),
            ("h.example:80", "https://h.example/", false), ("h.example:444", "https://h.example/", false),
            ("[::1]", "http://[::1]:8080/", true), ("[::1]:8080", "http://[::1]:8080/", true),
            ("[::1]:8080", "http://[::1]/", false), ("127.0.0.1", "http://127.0.0.1/", true),
        ]
    )
    func hosts(pattern: String, uri: String, applies: Bool) throws {
        #expect(try CacheRule(hosts: [pattern]).matches(Route(TargetURI(uri))) == applies)
    }

    @Test(
        "A path pattern must match the whole path, in the spelling of keys",
        arguments: [
            ("/api/*", "/api/x", true), ("/api/*", "/api/", true), ("/api/*", "/api/x/y", true),
            ("/api/*", "/api", false), ("/api/*", "/apis/x", false), ("/api/*", "/x/api/y", false),
            ("/api", "/api", true), ("/api", "/api?q=/x", true), ("/api", "/api/", false), ("/api", "/API", false),
            ("*.png", "/a/b.png", true), ("*.png", "/a/b.png?v=1", true), ("*.png", "/a/b.pngx", false),
            ("/*/edit", "/a/b/edit", true), ("/*/edit", "//edit", true), ("/*/edit", "/edit", false),
            ("*", "/", true), ("/", "/", true), ("/**", "/a", true), ("/a*b*c", "/axxbxxc", true),
            ("/a*b*c", "/abxc", true), ("/a*b*c", "/acb", false), ("/%61*", "/abc", true), ("/abc", "/%61bc", true),
            ("/caf%c3%a9", "/caf%C3%A9", true), ("/café", "/caf%C3%A9", true), ("/a b", "/a%20b", true),
            ("/%2A", "/%2a", true), ("/%2A", "/x", false), ("/a", "/b/../a", true), ("/a/*", "/%2e/a/x", true),
            ("/a%2Fb", "/a%2fb", true), ("/a/b", "/a%2Fb", false),
        ]
    )
    func paths(pattern: String, path: String, applies: Bool) throws {
        #expect(try CacheRule(paths: [pattern]).matches(Route(TargetURI("https://h.example\(path)"))) == applies)
    }

    @Test(
        "Content types are compared without parameters and letter case",
        arguments: [
            ("image/*", "image/png", true), ("image/*", "IMAGE/PNG; q=1", true), ("image/*", "imagex/png", false),
            ("application/json", "application/json;charset=utf-8", true),
            ("application/json", "application/problem+json", false),
            ("application/*json", "application/problem+json", true), ("*/*", "text/html", true),
            ("*/*", "nonsense", false), ("*/*", "", false), ("image/*", "image/png, text/html", false),
            ("TEXT/html", "text/html", true),
        ]
    )
    func contentTypes(pattern: String, value: String, applies: Bool) throws {
        let rule = try CacheRule(contentTypes: [pattern], lifetime: .seconds(9))
        var options = CacheOptions()
        options.rules = [rule]
        let fields: HeaderFields = value.isEmpty ? [:] : ["Content-Type": value]
        let ruled = options.ruled(for: try TargetURI("https://h.example/"), fields: fields)
        #expect(ruled?.defaultLifetime == (applies ? .seconds(9) : nil))
    }

    @Test(
        "A pattern that cannot match anything is refused with what is allowed",
        arguments: [
            [
                "", ".", "h.", "h..", "a/b", "h?x", "u@h", "h#f", "*h", "a.*.h", "*.", "*.*.h", "**", "h:", "h:x",
                "h:65536", "ftp://h",
            ],
            [
                "", "api", "api/*", "/a?x=1", "/a#b", "/a/../b", "/./a", "/%2e%2e/a", "/%zz", "/%2", "/a\n",
                "https://h/a",
            ],
            ["", "image", "/", "image/", "/png", "image/png;q=1", "a/b/c", "image /png", "text/ht ml"],
        ].enumerated().flatMap { kind, texts in texts.map { (kind, $0) } }
    )
    func refused(kind: Int, text: String) throws {
        let error = #expect(throws: CacheRulesError.self) {
            switch kind {
            case 0: try CacheRule(hosts: ["h.example", text])
            case 1: try CacheRule(paths: ["/a", text])
            default: try CacheRule(contentTypes: ["image/*", text])
            }
        }
        #expect(error?.message.contains(["*.shop.example", "/api/*", "image/*"][kind]) ?? false)
        #expect(error?.line == nil)
    }

    @Test("A pattern of more than 1,024 bytes is refused, one of 1,024 is not")
    func longPattern() throws {
        let longest = "/" + String(repeating: "a", count: 1_023)
        #expect(try CacheRule(paths: [longest]).matches(Route(TargetURI("http://h\(longest)"))))
        #expect(throws: CacheRulesError.self) { try CacheRule(paths: [longest + "a"]) }
    }

    @Test("Settings that contradict each other are refused")
    func contradictions() {
        #expect(throws: CacheRulesError.self) { try CacheRule(lifetime: .zero, fixedLifetime: .zero) }
        #expect(throws: CacheRulesError.self) { try CacheRule(lifetime: .zero, neverStore: true) }
        #expect(throws: CacheRulesError.self) { try CacheRule(fixedLifetime: .zero, neverStore: true) }
        #expect(throws: CacheRulesError.self) { try CacheRule(neverStore: true, staleIfError: .zero) }
        #expect(throws: CacheRulesError.self) { try CacheRule(neverStore: true, staleWhileRevalidate: .zero) }
        for name: FieldName in [
            "Range", "if-range", "If-Match", "If-None-Match", "if-modified-since", "if-unmodified-since",
        ] {
            #expect(throws: CacheRulesError.self) { try CacheRule(keyFields: [name]) }
        }
        let types = ["image/*"]
        #expect(throws: CacheRulesError.self) { try CacheRule(contentTypes: types, keyFields: ["X"]) }
        #expect(throws: CacheRulesError.self) { try CacheRule(contentTypes: types, query: QueryOptions()) }
        #expect(throws: CacheRulesError.self) { try CacheRule(contentTypes: types, ignoredCookies: ["a"]) }
        #expect(throws: CacheRulesError.self) { try CacheRule(contentTypes: types, content: .json) }
        #expect(throws: CacheRulesError.self) { try CacheRule(contentTypes: types, cachesPost: true) }
        #expect(throws: Never.self) { try CacheRule(contentTypes: types, neverStore: true) }
        #expect(throws: Never.self) { try CacheRule(neverStore: true, keyFields: ["X"], ignoredCookies: ["a"]) }
    }

    @Test("Negative durations count as zero")
    func negative() throws {
        let rule = try CacheRule(lifetime: .seconds(-1), staleIfError: .seconds(-1), staleWhileRevalidate: .seconds(-1))
        #expect(rule.lifetime == .zero && rule.staleIfError == .zero && rule.staleWhileRevalidate == .zero)
        #expect(try CacheRule(fixedLifetime: .seconds(-1)).fixedLifetime == .zero)
        var options = CacheOptions()
        options.defaultLifetime = .seconds(-1)
        #expect(options.defaultLifetime == .zero)
    }
}

@Suite struct WildcardPatternTests {
    /// What a pattern means, said in the shortest way: at each asterisk all lengths are tried.
    private func model(_ pattern: Substring.UTF8View, _ text: Substring.UTF8View) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        if first == UInt8(ascii: "*") {
            return (0...text.count).contains { model(pattern.dropFirst(), text.dropFirst($0)) }
        }
        return text.first == first && model(pattern.dropFirst(), text.dropFirst())
    }

    @Test("The matcher agrees with a simple model", arguments: [1, 2, 3, 4] as [UInt64])
    func property(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var matched = 0
        for _ in 0..<5_000 {
            let pattern = String(
                (0..<Int.random(in: 0...7, using: &source)).map { _ in "ab*".randomElement(using: &source)! }
            )
            let text = String(
                (0..<Int.random(in: 0...9, using: &source)).map { _ in "ab".randomElement(using: &source)! }
            )
            let expected = model(pattern[...].utf8, text[...].utf8)
            let isMatch = WildcardPattern(Array(pattern.utf8)).matches(text)
            #expect(isMatch == expected, "seed \(seed): \(pattern) and \(text)")
            matched += isMatch ? 1 : 0
        }
        #expect(matched > 300)
    }

    @Test("A pattern designed to be slow is as fast as any other", .timeLimit(.minutes(1)))
    func worst() {
        let pattern = WildcardPattern(Array(String(repeating: "*a", count: 500).utf8) + Array("*b".utf8))
        #expect(!pattern.matches(String(repeating: "a", count: 20_000)))
    }
}

@Suite struct CacheRulesTests {
    private func key(_ options: CacheOptions, _ path: String) throws -> String {
        options.keyTarget(of: try TargetURI("https://h.example\(path)?z=1&utm_source=x&id=2")).canonical
    }

    @Test("The first rule that matches applies, and no other")
    func first() throws {
        var options = CacheOptions()
        options.rules = [
            try CacheRule(hosts: ["h.example"], paths: ["/api/v1/*"], query: QueryOptions(allowedNames: ["id"])),
            try CacheRule(hosts: ["h.example"], paths: ["/api", "/api/*"], query: QueryOptions(sortsNames: true)),
            try CacheRule(hosts: ["h.example"], query: QueryOptions(ignoredNames: ["utm_*"])),
        ]
        #expect(try key(options, "/a") == "https://h.example/a?z=1&id=2")
        #expect(try key(options, "/api") == "https://h.example/api?id=2&utm_source=x&z=1")
        #expect(try key(options, "/api/x") == "https://h.example/api/x?id=2&utm_source=x&z=1")
        #expect(try key(options, "/api/v1/x") == "https://h.example/api/v1/x?id=2")
        #expect(try key(options, "/apis") == "https://h.example/apis?z=1&id=2")
        let elsewhere = try TargetURI("https://other.example/a?z=1&utm_source=x")
        #expect(options.keyTarget(of: elsewhere) == elsewhere)
        options.rules = CacheRules(options.rules.rules.reversed())
        #expect(try key(options, "/api/v1/x") == "https://h.example/api/v1/x?z=1&id=2")
    }

    @Test("A rule without a query leaves the cache's own in force, one with an empty query does not")
    func ownQuery() throws {
        var options = CacheOptions()
        options.query = QueryOptions(ignoredNames: ["utm_*"])
        options.rules = [
            try CacheRule(paths: ["/a"], lifetime: .seconds(1)), try CacheRule(paths: ["/b"], query: QueryOptions()),
        ]
        #expect(try key(options, "/a") == "https://h.example/a?z=1&id=2")
        #expect(try key(options, "/b") == "https://h.example/b?z=1&utm_source=x&id=2")
    }

    @Test("Rules with a content type do not affect keys, and take their turn in the list for responses")
    func twoDecisions() throws {
        var options = CacheOptions()
        options.rules = [
            try CacheRule(contentTypes: ["image/*"], lifetime: .seconds(100)),
            try CacheRule(paths: ["/s/*"], neverStore: true, query: QueryOptions(allowedNames: [])),
            try CacheRule(lifetime: .seconds(10), staleIfError: .seconds(20)),
        ]
        let (open, closed) = (try TargetURI("https://h.example/a?x"), try TargetURI("https://h.example/s/a?x"))
        func ruled(_ target: TargetURI, _ type: String) throws -> CacheOptions {
            try #require(options.ruled(for: target, fields: ["Content-Type": type]))
        }
        #expect(options.keyTarget(of: closed).query == nil && options.keyTarget(of: open).query == "x")
        #expect(try ruled(closed, "image/png").defaultLifetime == .seconds(100))
        #expect(try !ruled(closed, "image/png").neverStores && ruled(closed, "text/html").neverStores)
        #expect(try ruled(closed, "image/png").query.allowedNames == [])
        #expect(try ruled(open, "text/html").staleIfError == .seconds(20))
        #expect(try ruled(open, "image/png").staleIfError == .zero)
        // An image may be stored there, so the request alone does not tell.
        #expect(!options.neverStores(closed))
        options.rules.rules.removeFirst()
        #expect(options.neverStores(closed) && !options.neverStores(open))
    }

    @Test("A rule's cookies add to the cache's own, in whichever order they are set")
    func cookies() throws {
        let target = try TargetURI("https://h.example/a")
        let fields: HeaderFields = ["Cookie": "_ga=1; visit=2; own=3; sid=4"]
        let rule = try CacheRule(paths: ["/a"], ignoredCookies: ["visit"])
        var options = CacheOptions()
        options.ignoredCookies += ["own"]
        options.rules = [rule]
        var other = CacheOptions()
        other.rules = [rule]
        other.ignoredCookies += ["own"]
        #expect(options == other)
        for options in [options, other] {
            #expect(options.ignoredCookies(for: target).view(of: fields)[.cookie]?.contains("sid=4") ?? false)
            #expect(options.ignoredCookies(for: target).view(of: fields)[.cookie]?.contains("=3") == false)
            #expect(options.ignoredCookies(for: target).view(of: fields)[.cookie]?.contains("=2") == false)
            let elsewhere = try TargetURI("https://h.example/b")
            #expect(options.ignoredCookies(for: elsewhere).view(of: fields)[.cookie]?.contains("visit=2") ?? false)
            #expect(options.allIgnoredCookies.count == 2)
        }
    }

    @Test("Key fields: without a rule the key is unchanged, and each set of values gives another key")
    func keyFieldText() throws {
        var options = CacheOptions()
        let target = try TargetURI("https://h.example/a")
        func text(_ fields: HeaderFields, to target: TargetURI? = nil) throws -> String {
            options.keyFieldText(of: fields, to: try target ?? TargetURI("https://h.example/a"), secret: [1])
        }
        #expect(try text(["A": "1"]) == "")
        options.rules = [try CacheRule(paths: ["/a"], keyFields: ["B", "A", "a"])]
        #expect(try text([:], to: TargetURI("https://h.example/b")) == "")
        let all: [HeaderFields] = [
            [:], ["A": ""], ["A": "1"], ["B": "1"], ["A": "1", "B": "1"], ["A": "1, B"], ["A": "=", "B": ""],
            ["A": "11"], ["A": "1", "B": "="],
        ]
        #expect(try Set(all.map { try text($0) }).count == all.count)
        #expect(try text(["a": "1", "x": "2"]) == text(["A": "1"]) && text(["A": "1"]) != "")
        #expect(try !text(["A": "secret"]).contains("secret"))
        #expect(
            options.keyFieldText(of: ["A": "1"], to: target, secret: [2])
                != options.keyFieldText(of: ["A": "1"], to: target, secret: [1])
        )
    }

    @Test("Options without rules report none and copy nothing")
    func none() throws {
        var options = CacheOptions()
        options.rules = [try CacheRule(neverStore: true)]
        options.rules = []
        #expect(options == CacheOptions() && options.ruleTable == nil && options.rules == CacheRules())
        #expect(options.ruled(for: try TargetURI("http://h/"), fields: [:]) == nil)
    }
}
