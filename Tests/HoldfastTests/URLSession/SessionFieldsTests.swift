// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("What a session adds below the hooks", .timeLimit(.minutes(20)))
struct SessionFieldsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var fields: [String: String] = [:]
        var handlesCookies = true
        var setsCookies = true
        var hasSessionCookieHeader = false
        var userInfo = ""
        let implicit: [String: String]
    }

    private static let headers = ["X-Session": "s", "X-Number": "5"]

    @Test(
        "The implicit fields are exactly what is sent",
        arguments: [
            Case(
                testDescription: "session headers and cookies",
                implicit: ["X-Session": "s", "X-Number": "5", "Cookie": "sid=1"]
            ),
            Case(
                testDescription: "the request's own fields win",
                fields: ["x-session": "own", "cookie": "own=2"],
                implicit: ["X-Number": "5"]
            ),
            Case(
                testDescription: "the request wants no cookies",
                handlesCookies: false,
                implicit: ["X-Session": "s", "X-Number": "5"]
            ),
            Case(
                testDescription: "the session sets no cookies",
                setsCookies: false,
                implicit: ["X-Session": "s", "X-Number": "5"]
            ),
            Case(
                testDescription: "a Cookie among the session headers gives way to stored cookies",
                hasSessionCookieHeader: true,
                implicit: ["X-Session": "s", "X-Number": "5", "Cookie": "sid=1"]
            ),
            Case(
                testDescription: "a Cookie among the session headers",
                setsCookies: false,
                hasSessionCookieHeader: true,
                implicit: ["X-Session": "s", "X-Number": "5", "Cookie": "header=3"]
            ),
        ] + linuxCases
    )
    func implicitFields(_ test: Case) async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply() }
        let transport = URLSessionTransport(configuration: try configuration(test))
        let text = server.url("/fields").absoluteString.replacingOccurrences(of: "://", with: "://" + test.userInfo)
        var request = URLRequest(url: try #require(URL(string: text)))
        for (name, value) in test.fields { request.setValue(value, forHTTPHeaderField: name) }
        request.httpShouldHandleCookies = test.handlesCookies
        let implicit = transport.implicitFields(for: request)
        #expect(
            Dictionary(implicit.map { ($0.name.rawName, $0.value) }, uniquingKeysWith: { "\($0)+\($1)" })
                == test.implicit
        )
        _ = try await transport.send(request, body: .none, context: CallContext())
        let sent = try #require(server.requests.first)
        for (name, value) in implicit.merging(HeaderFields(test.fields)).map({ ($0.name.rawName, $0.value) }) {
            #expect(sent.values(of: name) == [value])
        }
        let automatic: Set = ["host", "accept", "accept-encoding", "accept-language", "user-agent", "connection"]
        let added = Set(sent.fields.map { $0.name.lowercased() }).subtracting(automatic)
        #expect(added == Set((implicit.map(\.name.rawName) + test.fields.keys).map { $0.lowercased() }))
    }

    @Test(
        "A stored cookie is sent by its own rules: Secure, path and time (RFC 6265 §5.4)",
        arguments: [
            ("http://a.example/", "all"), ("https://a.example/", "all secure"),
            ("https://a.example/only", "all only secure"),
            ("https://a.example/only/b", "all only secure"), ("https://a.example/onlyb", "all secure"),
            ("http://a.example", "all"),
            ("https://a.example/folder/", "all folder secure"), ("https://a.example/folder/b", "all folder secure"),
            ("https://a.example/folder", "all secure"), ("https://a.example/only%2Fb", "all secure"),
        ]
    )
    func cookieRules(_ url: String, _ names: String) throws {
        let configuration = URLSessionConfiguration.ephemeral
        for (name, path, further) in [
            ("all", "/", [:]), ("only", "/only", [:]), ("secure", "/", [.secure: "TRUE"]),
            ("folder", "/folder/", [:]),
            ("over", "/", [.expires: Date(timeIntervalSince1970: 1)]),
        ] as [(String, String, [HTTPCookiePropertyKey: Any])] {
            let rest: [HTTPCookiePropertyKey: Any] = [.name: name, .value: "1", .domain: "a.example", .path: path]
            let cookie = HTTPCookie(properties: rest.merging(further) { $1 })
            configuration.httpCookieStorage?.setCookie(try #require(cookie))
        }
        let request = URLRequest(url: try #require(URL(string: url)))
        let field = URLSessionTransport(configuration: configuration).implicitFields(for: request)["Cookie"] ?? ""
        #expect(field.split(separator: "; ").map { String($0.dropLast(2)) }.sorted().joined(separator: " ") == names)
    }

    @Test(
        "Max-Age wins over Expires, and ends a cookie if it is not above zero (RFC 6265 §5.2.2, §5.3)",
        arguments: [
            ("Max-Age=3600", true), ("max-age=0", false), ("Max-Age=-1", false), ("Max-Age=1h", true),
            ("Max-Age=3600; Expires=Thu, 01 Jan 1970 00:00:00 GMT", true),
            ("Expires=Thu, 01 Jan 2099 00:00:00 GMT; Max-Age=0", false),
        ]
    )
    func maxAge(_ attributes: String, _ isSent: Bool) throws {
        let configuration = URLSessionConfiguration.ephemeral
        let url = try #require(URL(string: "http://a.example/"))
        let fields = ["Set-Cookie": "sid=1; \(attributes)"]
        for cookie in HTTPCookie.cookies(withResponseHeaderFields: fields, for: url) {
            configuration.httpCookieStorage?.setCookie(cookie)
        }
        let fieldsSent = URLSessionTransport(configuration: configuration).implicitFields(for: URLRequest(url: url))
        #expect(fieldsSent["Cookie"] == (isSent ? "sid=1" : nil))
    }

    @Test(
        "The seconds of Max-Age",
        arguments: [
            ("0", 0), ("-5", -5), ("60", 60), ("99999999999999999999", 1e20), ("", nil), ("-", nil), ("+5", nil),
            ("1.5", nil), ("1h", nil), ("\u{663}", nil),
        ] as [(String, TimeInterval?)]
    )
    func maxAgeSeconds(_ text: String, _ seconds: TimeInterval?) {
        #expect(HTTPCookie.maxAge(text) == seconds)
    }

    @Test("Cookies that a response sets are stored and sent again")
    func cookiesAreKept() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(fields: [("Set-Cookie", "n=v; Path=/")]) }
        let transport = URLSessionTransport()
        _ = try await transport.send(server.url()).body.collect()
        #expect(transport.implicitFields(for: URLRequest(url: server.url("/x")))["Cookie"] == "n=v")
        _ = try await transport.send(server.url("/x"))
        #expect(server.requests.last?.values(of: "Cookie") == ["n=v"])
    }

    #if canImport(Darwin)
        private static let linuxCases: [Case] = []
    #else
        private static let linuxCases = [
            Case(
                testDescription: "Linux: user information in the URL becomes a Basic credential",
                userInfo: "us%20er:p%3Ass@",
                implicit: [
                    "X-Session": "s", "X-Number": "5", "Cookie": "sid=1", "Authorization": "Basic dXMgZXI6cDpzcw==",
                ]
            ),
            Case(
                testDescription: "Linux: the request's own Authorization wins over user information",
                fields: ["authorization": "Bearer t"],
                userInfo: "u:p@",
                implicit: ["X-Session": "s", "X-Number": "5", "Cookie": "sid=1"]
            ),
        ]
    #endif

    private func configuration(_ test: Case) throws -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        // A number: Foundation on Linux traps on it, unless the transport makes it text.
        configuration.httpAdditionalHeaders = ["X-Session": "s", "X-Number": 5]
        if test.hasSessionCookieHeader { configuration.httpAdditionalHeaders?["Cookie"] = "header=3" }
        configuration.httpShouldSetCookies = test.setsCookies
        let cookie = HTTPCookie(properties: [.name: "sid", .value: "1", .domain: "127.0.0.1", .path: "/"])
        configuration.httpCookieStorage?.setCookie(try #require(cookie))
        return configuration
    }
}
