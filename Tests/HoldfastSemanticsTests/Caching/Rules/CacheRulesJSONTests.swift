// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSemantics

@Suite struct CacheRulesJSONTests {
    private static let all = """
        {
          "rules": [
            {
              "comment": "for the API",
              "hosts": ["*.shop.example", "https://shop.example:8443"], "paths": ["/api/*"],
              "lifetime": "5m", "staleIfError": "1h", "staleWhileRevalidate": "30s",
              "keyFields": ["X-Tenant", "Accept-Language"],
              "query": { "sortsNames": true, "ignoredNames": ["utm_*"], "allowedNames": ["id", "p\\u0061ge"] },
              "ignoredCookies": ["visit", "ads_*"], "content": "graphql", "cachesPost": true
            },
            { "contentTypes": ["image/*"], "fixedLifetime": "7d" },
            { "paths": ["/account/*"], "neverStore": true }
          ]
        }
        """

    @Test("Each member sets the property of the same name")
    func members() throws {
        let rules = try CacheRules(json: CacheRulesJSONTests.all.utf8)
        #expect(
            try rules == [
                CacheRule(
                    hosts: ["*.shop.example", "https://shop.example:8443"],
                    paths: ["/api/*"],
                    lifetime: .seconds(300),
                    staleIfError: .seconds(3_600),
                    staleWhileRevalidate: .seconds(30),
                    keyFields: ["X-Tenant", "Accept-Language"],
                    query: QueryOptions(sortsNames: true, ignoredNames: ["utm_*"], allowedNames: ["id", "page"]),
                    ignoredCookies: ["visit", "ads_*"],
                    content: .graphQL,
                    cachesPost: true
                ),
                CacheRule(contentTypes: ["image/*"], fixedLifetime: .seconds(7 * 86_400)),
                CacheRule(paths: ["/account/*"], neverStore: true),
            ]
        )
    }

    @Test("Empty rules, white space, Windows line breaks and a byte order mark are accepted")
    func space() throws {
        #expect(try CacheRules(json: "{\"rules\":[]}".utf8) == CacheRules())
        #expect(try CacheRules(json: "\u{FEFF}\r\n{ \"rules\" :\t[\r\n] }\n\n".utf8) == CacheRules())
    }

    @Test(
        "Durations",
        arguments: [
            ("0s", 0), ("30s", 30), ("5m", 300), ("1h", 3_600), ("7d", 604_800), ("007s", 7), ("36500d", 3_153_600_000),
            ("36501d", nil), ("9999999999d", nil), ("99999999999s", nil), ("", nil), ("s", nil), ("5", nil),
            ("5 m", nil),
            ("-5m", nil), ("+5m", nil), ("1.5h", nil), ("5M", nil), ("5ms", nil), ("1h30m", nil), ("٥m", nil),
            ("5m ", nil),
        ] as [(String, Int?)]
    )
    func durations(text: String, seconds: Int?) throws {
        let json = "{\"rules\":[{\"lifetime\":\"\(text)\"}]}"
        guard let seconds else {
            let error = #expect(throws: CacheRulesError.self) { try CacheRules(json: json.utf8) }
            #expect(error?.line == 1 && error?.column == 23 && error?.message.contains("\"5m\"") ?? false)
            return
        }
        #expect(try CacheRules(json: json.utf8).rules.first?.lifetime == .seconds(seconds))
    }

    @Test(
        "An error names the position and what is allowed there",
        arguments: [
            ("", 1, 1, "ends where a value"), ("  \n ", 2, 2, "ends where a value"), ("[]", 1, 1, "write an object"),
            ("{}", 1, 1, "There is no \"rules\""), ("{\"rule\":[]}", 1, 2, "the only one here is rules"),
            ("{\"rules\":{}}", 1, 10, "rules must be a list"), ("{\"rules\":[]} x", 1, 14, "more after the end"),
            ("{\"rules\":[1]}", 1, 11, "A rule must be an object"), ("{\"rules\":[{}]}", 1, 11, "sets nothing"),
            ("{\"rules\":[{\"paths\":[\"/a\"]}]}", 1, 11, "sets nothing"),
            ("{\"rules\":[],}", 1, 13, "name of a member"), ("{\"rules\":[,]}", 1, 11, "No value begins"),
            ("{\"rules\":[] \"x\":1}", 1, 13, "A comma or }"), ("{\"rules\" []}", 1, 10, "A colon"),
            ("{\"rules\":[],\"rules\":[]}", 1, 13, "twice"), ("{'rules':[]}", 1, 2, "in double quotes"),
            ("{\n  \"rules\": [\n    { \"lifetme\": \"5m\" }\n  ]\n}", 3, 7, "lifetime, fixedLifetime"),
            ("{\r\n\"rules\":[{\r\n\"é\":1}]}", 3, 1, "not a member of a rule"),
            ("{\"rules\":[{\"comment\":\"éé\",\"x\":1}]}", 1, 27, "not a member of a rule"),
            ("\u{FEFF}{\"rule\":[]}", 1, 2, "the only one"),
            ("{\"rules\":[{\"lifetime\":300}]}", 1, 23, "in \"5m\""),
            ("{\"rules\":[{\"lifetime\":null}]}", 1, 23, "in \"5m\""),
            ("{\"rules\":[{\"neverStore\":\"yes\"}]}", 1, 25, "true or false, but this is a string"),
            ("{\"rules\":[{\"hosts\":\"h\"}]}", 1, 20, "hosts must be a list, as in"),
            ("{\"rules\":[{\"hosts\":[]}]}", 1, 20, "leave it out"),
            ("{\"rules\":[{\"hosts\":[1]}]}", 1, 21, "a string here"),
            ("{\"rules\":[{\"hosts\":[\"h\",\n \"a/b\"]}]}", 2, 2, "*.shop.example"),
            ("{\"rules\":[{\"paths\":[\"a\"]}]}", 1, 21, "/api/*"),
            ("{\"rules\":[{\"contentTypes\":[\"image\"]}]}", 1, 28, "image/*"),
            ("{\"rules\":[{\"keyFields\":[\"a b\"]}]}", 1, 25, "not a field name"),
            ("{\"rules\":[{\"keyFields\":[\"Range\"]}]}", 1, 11, "cannot be a key field"),
            ("{\"rules\":[{\"ignoredCookies\":[\"*\"]}]}", 1, 30, "not a cookie name"),
            ("{\"rules\":[{\"ignoredCookies\":[\"\"]}]}", 1, 30, "not a cookie name"),
            ("{\"rules\":[{\"query\":[]}]}", 1, 20, "query must be an object"),
            ("{\"rules\":[{\"query\":{\"ignored\":[]}}]}", 1, 21, "sortsNames, ignoredNames, allowedNames"),
            ("{\"rules\":[{\"content\":\"xml\"}]}", 1, 22, "\"raw\", \"json\" or \"graphql\""),
            ("{\"rules\":[{\"lifetime\":\"1s\",\"fixedLifetime\":\"1s\"}]}", 1, 11, "not both"),
            ("{\"rules\":[{\"comment\":\"a\nb\"}]}", 1, 22, "has no end"),
            ("{\"rules\":[{\"comment\":\"\\x\"}]}", 1, 22, "has no end"),
            ("{\"rules\":[{\"comment\":\"\\ud800\"}]}", 1, 22, "has no end"),
            ("{\"rules\":[{\"comment\":[[[[[[[[[]]]]]]]]]}]}", 1, 27, "more than 8"),
            ("{\"rules\":[{\"comment\":01}]}", 1, 23, "A comma or }"),
            ("{\"rules\":[{\"comment\":-}]}", 1, 22, "No value"),
        ] as [(String, Int, Int, String)]
    )
    func errors(json: String, line: Int, column: Int, part: String) throws {
        let error = try #require(throws: CacheRulesError.self) { try CacheRules(json: json.utf8) }
        #expect(error.line == line && error.column == column && error.message.contains(part), "\(error)")
        #expect(error.description.hasPrefix("line \(line), column \(column): "))
        #expect(error.message.hasSuffix("."))
    }

    @Test("Invalid UTF-8 is reported where it begins")
    func encoding() throws {
        let bytes = Array("{\n  \"é".utf8) + [0xFF]
        let error = try #require(throws: CacheRulesError.self) { try CacheRules(json: bytes) }
        #expect(error.line == 2 && error.column == 5 && error.message.contains("UTF-8"))
    }

    @Test("Values beyond the limits are refused, values at the limits are not")
    func limits() throws {
        func list(_ text: String, _ count: Int) -> String {
            Array(repeating: text, count: count).joined(separator: ",")
        }
        func isRead(_ json: String) -> Bool { (try? CacheRules(json: json.utf8)) != nil }
        let rule = "{\"lifetime\":\"1s\"}"
        #expect(isRead("{\"rules\":[\(list(rule, 1_000))]}") && !isRead("{\"rules\":[\(list(rule, 1_001))]}"))
        func hosts(_ count: Int) -> String { "{\"rules\":[{\"lifetime\":\"1s\",\"hosts\":[\(list("\"h\"", count))]}]}" }
        #expect(isRead(hosts(100)) && !isRead(hosts(101)))
        let empty = "{\"rules\":[]}"
        let space = String(repeating: " ", count: (1 << 20) - empty.utf8.count)
        #expect(isRead(empty + space) && !isRead(empty + space + " "))
        #expect(!isRead("{\"rules\":" + String(repeating: "[", count: 100_000)))
        let many = (0..<100_000).map { "\"\($0)\":1" }.joined(separator: ",")
        #expect(!isRead("{\(many)}"))
        let path = String(repeating: "a", count: 2_000)
        #expect(!isRead("{\"rules\":[{\"lifetime\":\"1s\",\"paths\":[\"/\(path)\"]}]}"))
    }

    @Test("Cut, flipped and doubled bytes give rules or an error with a position in the text, and never trap")
    func damaged() {
        let whole = Array(CacheRulesJSONTests.all.utf8)
        for count in whole.indices {
            let error = #expect(throws: CacheRulesError.self) { try CacheRules(json: whole.prefix(count)) }
            #expect(error?.line != nil)
        }
        var source = SeededGenerator(seed: 28)
        var read = 0
        for turn in 0..<20_000 {
            var bytes = whole
            for _ in 0...Int.random(in: 0...3, using: &source) {
                let place = bytes.indices.randomElement(using: &source) ?? 0
                switch Int.random(in: 0...3, using: &source) {
                case 0: bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &source)
                case 1: bytes[place] = "{}[]\",:*/\\ \n0".utf8.randomElement(using: &source) ?? 0
                case 2: bytes.remove(at: place)
                default: bytes.insert(bytes[place], at: place)
                }
            }
            do throws(CacheRulesError) {
                _ = try CacheRules(json: bytes)
                read += 1
            } catch {
                let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                let line = error.line.map { $0 >= 1 && $0 <= lines.count ? lines[$0 - 1] : [] } ?? []
                #expect(error.column.map { $0 >= 1 && $0 <= line.count + 1 } ?? false, "turn \(turn): \(error)")
            }
        }
        #expect(read > 1_000)
    }
}
