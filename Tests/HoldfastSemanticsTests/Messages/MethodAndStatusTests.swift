// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct MethodAndStatusTests {
    @Test(
        "RFC 9110 §9.2: safe and idempotent methods; an unknown one is neither",
        arguments: [
            (RequestMethod.get, true, true), (.head, true, true), (.options, true, true), (.trace, true, true),
            (.query, true, true), (.put, false, true), (.delete, false, true), (.post, false, false),
            ("PROPFIND", true, true), ("REPORT", true, true),
            ("SEARCH", true, true), ("M-SEARCH", false, false), (.patch, false, false), (.connect, false, false),
            ("get", false, false), ("PURGE", false, false),
        ]
    )
    func methods(method: RequestMethod, isSafe: Bool, isIdempotent: Bool) {
        #expect(method.isSafe == isSafe)
        #expect(method.isIdempotent == isIdempotent)
    }

    @Test("RFC 9110 §9.1: methods are case-sensitive tokens")
    func tokens() {
        #expect(RequestMethod(validating: "GET") == .get)
        #expect(RequestMethod(validating: "get") != .get)
        #expect(RequestMethod(validating: "M-SEARCH")?.rawValue == "M-SEARCH")
        for text in ["", "GET ", "G(T", "É", "A\r\nB"] {
            #expect(RequestMethod(validating: text) == nil)
        }
    }

    @Test(
        "RFC 9110 §15: classes of status codes",
        arguments: [
            (99, "", false), (100, "1", true), (199, "1", true), (200, "2", true), (304, "3", true), (499, "4", true),
            (599, "5", true), (600, "", false), (-1, "", false),
        ]
    )
    func classes(code: Int, expected: String, isValid: Bool) {
        let status = StatusCode(code)
        let classes = [
            status.isInformational ? "1" : "", status.isSuccessful ? "2" : "", status.isRedirection ? "3" : "",
            status.isClientError ? "4" : "", status.isServerError ? "5" : "",
        ]
        #expect(classes.joined() == expected)
        #expect(status.isValid == isValid)
        #expect(status.isFinal == (isValid && code >= 200))
        #expect(!status.reasonPhrase.isEmpty)
    }

    @Test("RFC 9110 §15.1: exactly these codes are heuristically cacheable")
    func heuristicallyCacheable() {
        let cacheable = (0...700).filter { StatusCode($0).isHeuristicallyCacheable }
        #expect(cacheable == [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501])
    }

    @Test("RFC 6585 §3–§6: no cache stores a response with these codes, and RFC 9111 §3 forbids no others")
    func forbidStoring() {
        #expect((0...700).filter { StatusCode($0).forbidsStoring } == [425, 428, 429, 431, 511])
    }

    @Test func phrases() {
        #expect(StatusCode.notFound.reasonPhrase == "Not Found")
        #expect(StatusCode(599).reasonPhrase == "Server Error")
        #expect(!StatusCode(599).isRegistered && StatusCode.tooEarly.isRegistered)
    }

    @Test(
        "RFC 9110 §13.1, §14.2: conditional and partial requests",
        arguments: [
            ("If-None-Match", true), ("if-match", true), ("If-Modified-Since", true), ("If-Unmodified-Since", true),
            ("If-Range", true), ("Range", true), ("If-Schedule-Tag-Match", false), ("Accept", false),
        ]
    )
    func conditional(name: String, expected: Bool) throws {
        var request = RequestHead(target: try target())
        request.fields.append(rawName: name, value: "x")
        #expect(request.isConditionalOrPartial == expected)
    }

    @Test(
        "RFC 9110 §7.2: a Host field names another authority unless it is exactly that of the URI",
        arguments: [
            ("example.com", false), ("EXAMPLE.com:443", false), ("example.com:444", true), ("other.example", true),
            ("u@example.com", true), ("example.com/", true), ("example.com?", true), ("example.com#", true),
            ("", true),
        ]
    )
    func host(value: String, isOther: Bool) throws {
        let request = RequestHead(target: try target(), fields: ["Host": value])
        #expect(request.namesOtherHost == isOther)
    }

    @Test(
        "RFC 9111 §5.1: Age is the first member's digits",
        arguments: [
            (["0"], Int64(0)), (["7200, 0"], 7200), (["0, 7200"], 0), (["0", "7200"], 0), (["abc"], nil),
            (["-7200"], nil),
            (["1.5"], nil), ([""], nil), (["99999999999"], 2_147_483_648), ([], nil), (["7;x"], nil),
        ] as [([String], Int64?)]
    )
    func age(lines: [String], expected: Int64?) {
        let fields = HeaderFields(lines.map { HeaderFields.Line(name: .age, value: $0) })
        #expect(ResponseHead(status: .ok, fields: fields).age == expected)
    }
}
