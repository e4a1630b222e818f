// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("CallLogger: values without names, in texts and echoed", .timeLimit(.minutes(20)))
struct CallLoggerEchoTests {
    /// A call whose request or response has a secret in one place or several.
    struct Exchange: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var query = ""
        var fields: [String: String] = [:]
        var type = "application/x-www-form-urlencoded"
        var content = "a=1"
        var answer: HeaderFields = [:]
        var json = "{}"
        /// What no message may contain; or, of a harmless call, what both must contain.
        var traces = ["s3cret"]
    }

    private func texts(of exchange: Exchange) async throws -> [String] {
        let texts = LoggedTexts()
        var answer = exchange.answer
        answer.append("Content-Type", "application/json")
        let transport = ScriptedTransport([.respond(200, answer, body: exchange.json)])
        var request = URLRequest(url: try #require(URL(string: "https://example.com/p?\(exchange.query)")))
        request.httpMethod = "POST"
        request.allHTTPHeaderFields = exchange.fields
        request.setValue(exchange.type, forHTTPHeaderField: "Content-Type")
        let body = RequestBody.data(Data(exchange.content.utf8))
        _ = try await Pipeline(transport: transport, hooks: [texts.logger(bodies: 1 << 20)]).send(request, body: body)
        #expect(texts.all.count == 2)
        return texts.all
    }

    static let leaks = [
        Exchange(
            testDescription: "JSON that is sent as a form",
            content: #"{"token":"s3cret&more","a":"b=c"}"#,
            json: #"{"seen":"s3cret&more"}"#
        ),
        Exchange(
            testDescription: "a token that is sent as a form",
            content: "s3cret-of-a-user",
            json: #"{"seen":"s3cret-of-a-user"}"#
        ),
        Exchange(
            testDescription: "a credential that is sent as a form",
            content: "Bearer s3cret-A1",
            json: #"{"seen":"s3cret-A1"}"#
        ),
        Exchange(
            testDescription: "a token that is the whole query",
            query: "s3cret-of-a-user==",
            json: #"{"seen":"s3cret-of-a-user=="}"#
        ),
        Exchange(
            testDescription: "long unknown values with slashes and with spaces",
            fields: ["X-Place": "s3cret/with/slashes", "X-Words": "s3cret with words"],
            json: #"{"seen":"s3cret/with/slashes and s3cret with words"}"#
        ),
        Exchange(
            testDescription: "an unknown value as it was written and as it was meant",
            content: "state=s3cret%2Fencoded%2Bvalue",
            json: #"{"plain":"s3cret/encoded+value","written":"s3cret%2Fencoded%2Bvalue"}"#
        ),
        Exchange(
            testDescription: "a token in a URL in an unknown argument",
            query: "callback=https%3A%2F%2Fh%2F%3Ftoken%3Ds3cret-1",
            json: #"{"seen":"s3cret-1"}"#
        ),
        Exchange(
            testDescription: "a secret with encoded delimiters in a URL in a shown argument",
            query: "from=https%3A%2F%2Fh%2F%3Ftoken%3Da%2520s3cret%2526s3cret"
        ),
        Exchange(
            testDescription: "arguments after a semicolon, or an encoded delimiter, in shown arguments",
            query: "page=1;code=s3cret-1&q=a%3Bb=s3cret-2&sort=b%26s3cret-of-a-user&from=https://h/%3Bcode=s3cret-3",
            content: "page=1;code=s3cret-4&q=1%3Bpage=2%253Bcode=s3cret-5"
        ),
        Exchange(
            testDescription: "a password with delimiters in a URL in a shown argument",
            query: "from=https%3A%2F%2Fuser%3As3cret%3Bs3cret%26s3cret%40h%2F"
        ),
        Exchange(
            testDescription: "a URL in angle brackets",
            answer: ["Link": "<https://h/?token=s3cret-1>; rel=next"],
            json: #"{"seen":"s3cret-1"}"#
        ),
        Exchange(
            testDescription: "a parameter after angle brackets",
            answer: ["Link": "<https://h/next>;token=s3cret-1;rel=next"],
            json: #"{"seen":"s3cret-1"}"#
        ),
        Exchange(
            testDescription: "a parameter before a comma and a space",
            fields: ["Accept": "text/html;token=s3cret-1, text/plain"],
            json: #"{"seen":"s3cret-1"}"#
        ),
        Exchange(
            testDescription: "a parameter among others",
            fields: ["Accept": "text/html;token=s3cret-1;q=0.5,text/plain"],
            json: #"{"seen":"s3cret-1"}"#
        ),
        Exchange(
            testDescription: "lines of one name that were joined",
            fields: ["X-Auth-Token": "s3cret-1, s3cret-2", "X-Device": "s3cret-of-one, s3cret-of-two"],
            json: #"{"seen":["s3cret-1","s3cret-2","s3cret-of-one","s3cret-of-two"]}"#
        ),
        Exchange(
            testDescription: "credentials inside longer texts",
            json: #"{"a":"an Authorization: Bearer s3cretA1=, too","b":"(Basic s3cretA2)","c":"s3cretA1= s3cretA2"}"#
        ),
        Exchange(
            testDescription: "a secret with the signs of a URL in a text",
            json: #"{"detail":"password=s3cret#s3cret?s3cret was wrong"}"#
        ),
        Exchange(
            testDescription: "a quoted secret with spaces in a text",
            json: #"{"detail":"password=\"my s3cret & my s3cret\" was wrong"}"#
        ),
        Exchange(
            testDescription: "a secret that is escaped in JSON",
            type: "application/json",
            content: #"{"password":"\"s3cret\\"}"#,
            json: #"{"seen":"it was \"s3cret\\ again"}"#
        ),
        Exchange(
            testDescription: "a secret of two lines in JSON",
            type: "application/json",
            content: #"{"password":"one-s3cret\n\ts3cret\u0001two"}"#,
            json: #"{"seen":"it was one-s3cret\n\ts3cret\u0001two"}"#
        ),
        Exchange(
            testDescription: "a secret that is escaped in JSON in JSON, with its slash and its accent or without",
            type: "application/json",
            content: #"{"password":"s3cret\"a/é\\"}"#,
            json: #"{"seen":["{\"a\":\"s3cret\\\"a\\/é\\\\\"}","{\"b\":\"s3cret\\\"a/\\u00e9\\\\\"}"]}"#
        ),
        Exchange(
            testDescription: "a secret that is a number",
            type: "application/json",
            content: #"{"pin":735371}"#,
            json: #"{"seen":"it was 735371"}"#,
            traces: ["735371"]
        ),
    ]

    @Test("Nothing of these is shown, in its own place or where it is echoed", arguments: leaks)
    func hidden(_ exchange: Exchange) async throws {
        let all = try await texts(of: exchange).joined(separator: "\n")
        for trace in exchange.traces { #expect(!all.contains(trace), "\(all)") }
    }

    static let harmless = [
        Exchange(
            testDescription: "sentences",
            json: #"{"a":"the bearer token and basic access","b":"100% of <b>C#</b>, see https://h/a_(b)."}"#,
            traces: [#"{"a":"the bearer token and basic access","b":"100% of <b>C#</b>, see https://h/a_(b)."}"#]
        ),
        Exchange(
            testDescription: "a challenge",
            answer: ["WWW-Authenticate": #"Bearer realm="example.com", error="invalid_token""#],
            json: #"{"error":"invalid_token"}"#,
            traces: [#"{"error":"invalid_token"}"#, "POST https://example.com/p?"]
        ),
        Exchange(
            testDescription: "links",
            answer: ["Link": #"<https://h/?page=2>; rel="next", <https://h/?page=9>; rel="last""#],
            traces: [#"  Link: <https://h/?page=2>; rel="next", <https://h/?page=9>; rel="last""#]
        ),
        Exchange(
            testDescription: "the key of a cache",
            answer: ["Cache-Status": #"Edge; hit; key="https://example.com/p""#],
            traces: [#"  Cache-Status: Edge; hit; key="https://example.com/p""#, "POST https://example.com/p?"]
        ),
        Exchange(
            testDescription: "an unknown URL that is also the call's",
            query: "callback=https%3A%2F%2Fexample.com%2Fp",
            traces: ["POST https://example.com/p?callback=<#"]
        ),
        Exchange(
            testDescription: "shown arguments with delimiters",
            query: "fields=id;name&page=2;q=a%26b",
            traces: ["/p?fields=id;name&page=2;q=a%26b"]
        ),
        Exchange(testDescription: "names without a value", query: "edit&page=2&x=", traces: ["/p?edit&page=2&x="]),
    ]

    @Test("What is harmless stays readable", arguments: harmless)
    func shown(_ exchange: Exchange) async throws {
        let last = try await texts(of: exchange)[1]
        for trace in exchange.traces { #expect(last.contains(trace), "\(last)") }
    }

    @Test("Text that nests without end is searched in good time", arguments: ["?/=", "25", "<", "=\"", "a=%25", "//@"])
    func nesting(_ part: String) async throws {
        let text = "%" + String(repeating: part, count: 3_000)
        let json = String(decoding: try JSONEncoder().encode(["text": text]), as: UTF8.self)
        let exchange = Exchange(testDescription: part, content: text, json: json)
        #expect(try await texts(of: exchange)[1].count < 2 * json.count)
    }
}
