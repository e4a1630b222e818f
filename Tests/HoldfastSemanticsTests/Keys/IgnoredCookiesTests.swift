// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite("Cookies that a cache ignores")
struct IgnoredCookiesTests {
    /// Cookie lines of a request, and those that are left.
    struct Case: Sendable, CustomTestStringConvertible {
        let lines: [String]
        let left: [String]
        var testDescription: String { "\(lines) -> \(left)" }

        init(_ lines: String..., left: String...) {
            (self.lines, self.left) = (lines, left)
        }
    }

    private static let ignored = IgnoredCookies(names: ["lb", "ads_*", "x*y", "", "caf\u{E9}"])

    private static func fields(_ lines: [String]) -> HeaderFields {
        var fields: HeaderFields = ["Accept": "text/html"]
        for line in lines { fields.append(.cookie, line) }
        fields.append("X-Last", "lb=1")
        return fields
    }

    @Test(
        "RFC 6265 §4.2.1: ignored pairs are removed, the rest stays unchanged",
        arguments: [
            Case("lb=1"), Case("lb=1; ads_2=3"), Case("lb=1", "ads_=2"), Case("lb=1;"), Case(" ; lb=1 ;; "),
            Case("lb=1; sid=2", left: "sid=2"), Case("sid=2; lb=1", left: "sid=2"),
            Case("a=1; lb=1; b=2", left: "a=1; b=2"), Case("a=1;lb=1;b=2", left: "a=1;b=2"),
            Case("a=1", "lb=1", "b=2", left: "a=1", "b=2"), Case("a=1", "lb=1; b=2", left: "a=1", "b=2"),
            // Spaces, quotes and further signs in the value.
            Case("lb = 1; a=1", left: "a=1"), Case("lb=\"1\"; a=1", left: "a=1"),
            Case("lb=a=b==; a=c=d", left: "a=c=d"),
            Case("lb=; a=1", left: "a=1"), Case("lb=1; a=\"b\"", left: "a=\"b\""),
            // Names are compared whole and with their letter case; a star counts at the end alone.
            Case("LB=1", left: "LB=1"), Case("l=1; lbs=2; alb=3", left: "l=1; lbs=2; alb=3"), Case("x*y=1"),
            Case("xzy=1", left: "xzy=1"), Case("ads_=1; ads=2; Ads_3=4", left: "ads=2; Ads_3=4"),
            // No name, no sign, or a name that is no token.
            Case("=lb", left: "=lb"), Case("=", left: "="), Case("lb", left: "lb"), Case("", left: ""),
            Case("ads_(=1", left: "ads_(=1"), Case("caf\u{E9}=1", left: "caf\u{E9}=1"),
            Case("cafe\u{301}=1", left: "cafe\u{301}=1"),
            // What another parser may read as another cookie stays.
            Case("lb=1, sid=2", left: "lb=1, sid=2"), Case("lb=1,sid=2; lb=3", left: "lb=1,sid=2"),
            Case("a=\"b; lb=1; c\"", left: "a=\"b; lb=1; c\""), Case("lb=\"1; sid=2; 3\"", left: "lb=\"1; sid=2; 3\""),
            Case("lb=1\\; a=2", left: "lb=1\\; a=2"), Case("lb=a b", left: "lb=a b"),
            // An empty line beside others.
            Case("", "lb=1"), Case("", "a=1", "lb=1", left: "", "a=1"),
        ]
    )
    func views(_ item: Case) {
        let view = Self.ignored.view(of: Self.fields(item.lines))
        #expect(view == Self.fields(item.left))
        #expect(Self.ignored.view(of: view) == view)
    }

    @Test("Fields with nothing to ignore are returned unchanged", arguments: [[], ["a=1", "b=2"], ["LB=1"]])
    func untouched(_ lines: [String]) {
        let fields = Self.fields(lines)
        #expect(Self.ignored.view(of: fields).isIdentical(to: fields))
        let some = Self.fields(["lb=1"])
        #expect(IgnoredCookies.none.view(of: some).isIdentical(to: some))
    }

    @Test("A star alone ignores every cookie that has a name")
    func all() {
        let all = IgnoredCookies(names: ["*"])
        #expect(all.view(of: Self.fields(["a=1; b=2", "c=3"])) == Self.fields([]))
        #expect(all.view(of: Self.fields(["a=1; =2"])) == Self.fields(["=2"]))
    }

    @Test(
        "Set-Cookie lines are left out by name, including joined ones",
        arguments: [
            (["lb=1; Path=/"], []), (["lb=1", "sid=2", "ads_3=4"], ["sid=2"]), (["sid=lb=1"], ["sid=lb=1"]),
            (["LB=1", "lb", "=lb", "lbs=1; lb=2"], ["LB=1", "lb", "=lb", "lbs=1; lb=2"]),
            (["lb=1; Expires=Thu, 01 Jan 2099 00:00:00 GMT; Path=/, sid=2; Path=/"], ["sid=2; Path=/"]),
            (
                ["sid=2; Expires=Thu, 01-Jan-99 00:00:00 GMT,lb=1, a=3; Secure"],
                ["sid=2; Expires=Thu, 01-Jan-99 00:00:00 GMT, a=3; Secure"]
            ),
            (["sid=2,  a=3"], ["sid=2,  a=3"]), (["lb=1, ads_=2"], []),
        ] as [([String], [String])]
    )
    func setCookies(_ lines: [String], _ left: [String]) {
        func head(_ lines: [String]) -> ResponseHead {
            var fields: HeaderFields = ["ETag": "\"a\""]
            for line in lines { fields.append(.setCookie, line) }
            return ResponseHead(status: .ok, fields: fields)
        }
        let stored = FieldUpdate.storable(
            head(lines),
            contentDecoded: false,
            mode: .private,
            ignoredCookies: Self.ignored
        )
        #expect(stored == head(left))
        #expect(FieldUpdate.storable(head(lines), contentDecoded: false, mode: .private) == head(lines))
    }

    @Test("A 304 neither adds such a cookie nor removes others because of it")
    func freshened() throws {
        let stored = StoredResponse(
            target: try target(),
            head: ResponseHead(status: .ok, fields: ["ETag": "\"a\"", "Set-Cookie": "sid=1", "set-cookie": "lb=0"]),
            requestTime: .noon,
            responseTime: .noon
        )
        let freshened = stored.freshened(
            by: ResponseHead(status: .notModified, fields: ["Set-Cookie": "lb=2"]),
            requestTime: .noon,
            responseTime: .noon,
            mode: .private,
            ignoredCookies: Self.ignored
        )
        #expect(freshened.head.fields.values(of: .setCookie) == ["sid=1"])
    }

    @Test(
        "The well-known cookies are ignored by default",
        arguments: [
            "AWSALB", "AWSALBCORS", "AWSALBTGCORS", "AWSALBAPP-0", "AWSELBCORS", "__cf_bm", "_cfuvid", "GCLB",
            "ARRAffinitySameSite", "BIGipServerpool~web", "incap_ses_1_2", "visid_incap_2", "_ga", "_ga_AB12", "_gid",
            "_gat_UA-1", "_fbp", "_hjSession_1", "__utmz", "_pk_id.1.fff", "_clsk", "_uetsid", "__hssc",
        ]
    )
    func wellKnown(_ name: String) {
        #expect(CacheOptions().ignored.view(of: ["Cookie": "\(name)=1"]).isEmpty)
    }

    @Test(
        "Cookies that may carry a login or select content are not among the defaults",
        arguments: [
            "JSESSIONID", "PHPSESSID", "SERVERID", "sid", "session", "ASP.NET_SessionId", "connect.sid", "awsalb",
            "AWSALBX",
            "CF_Authorization", "cf_clearance", "intercom-session-a", "hubspotutk", "__hstc", "_gaexp", "__utmx",
            "AMCV_1",
            "mbox", "NSC_AAAC", "__Host-id", "_gh_sess", "_gitlab_session", "_g", "AWSELBAuthSessionCookie-0",
            "ai_session",
            "ai_user", "_hjlogin", "_pk_login",
        ]
    )
    func notWellKnown(_ name: String) {
        let fields: HeaderFields = ["Cookie": "\(name)=1"]
        #expect(CacheOptions().ignored.view(of: fields) == fields)
    }

    @Test("The list in the options can be read, extended and emptied")
    func options() {
        var options = CacheOptions()
        #expect(options.ignoredCookies == IgnoredCookies.wellKnown.names)
        options.ignoredCookies += ["visit"]
        #expect(options.ignored.view(of: ["Cookie": "visit=1; AWSALB=2"]).isEmpty)
        #expect(options != CacheOptions())
        options.ignoredCookies = []
        #expect(options.ignored == .none)
        options.ignoredCookies = CacheOptions().ignoredCookies
        #expect(options == CacheOptions())
    }

    @Test("For generated lines the result equals that of a simple splitter", arguments: [UInt64(22_07)])
    func property(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let names = ["lb", "ads_", "ads_1", "sid", "l", "lbx", "LB", "", "ads"]
        let values = ["1", "", "a=b", "\"q\"", "\"", "a,b", "a b", "\\"]
        let separators = [";", "; ", " ;", ";;"]
        for round in 0..<20_000 {
            let lines = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
                var line = ""
                for _ in 0..<Int.random(in: 0...4, using: &generator) {
                    line += names.randomElement(using: &generator) ?? ""
                    if Int.random(in: 0..<8, using: &generator) > 0 {
                        line += "=" + (values.randomElement(using: &generator) ?? "")
                    }
                    line += separators.randomElement(using: &generator) ?? ""
                }
                return line
            }
            let fields = Self.fields(lines)
            #expect(
                Self.ignored.view(of: fields) == Self.naiveView(of: fields),
                "seed \(seed), round \(round): \(lines)"
            )
        }
    }

    /// Character by character, with nothing but the rules.
    private static func naiveView(of fields: HeaderFields) -> HeaderFields {
        func trimmed(_ text: String) -> String {
            String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
        func isIgnored(_ pair: String) -> Bool {
            var parts = pair.split(separator: "=", omittingEmptySubsequences: false).map { String($0) }
            guard parts.count > 1 else { return false }
            let name = trimmed(parts.removeFirst())
            let value = trimmed(parts.joined(separator: "="))
            let content =
                value.count > 1 && value.first == "\"" && value.last == "\""
                ? String(value.dropFirst().dropLast()) : value
            let isWellFormed = !content.contains { " \",\\".contains($0) }
            return isWellFormed && (name == "lb" || name.hasPrefix("ads_"))
        }
        var left: [(HeaderFields.Line, isBlank: Bool)] = []
        var isChanged = false
        for line in fields where line.name == .cookie {
            var pairs: [String] = [""]
            for character in line.value {
                if character == ";" { pairs.append("") } else { pairs[pairs.count - 1].append(character) }
            }
            let isUnclear = pairs.contains { $0.filter { $0 == "\"" }.count % 2 == 1 }
            let kept = isUnclear ? pairs : pairs.filter { !isIgnored($0) }
            let text = HeaderFields.Line(name: .cookie, value: kept.joined(separator: ";"))
            let isBlank = !text.value.contains { $0 != ";" && $0 != " " }
            if kept.count < pairs.count {
                isChanged = true
                if !isBlank { left.append((text, false)) }
            } else {
                left.append((line, isBlank))
            }
        }
        guard isChanged else { return fields }
        if left.allSatisfy(\.isBlank) { left = [] }
        return HeaderFields(fields.prefix(1) + left.map(\.0) + fields.suffix(1))
    }
}
