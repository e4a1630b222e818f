// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastSemantics
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("HTTPRequest and URLRequest")
    struct RequestConversionTests {
        static func request(
            _ scheme: String?,
            _ authority: String?,
            _ path: String?,
            method: HTTPRequest.Method = .get
        ) -> HTTPRequest {
            HTTPRequest(method: method, scheme: scheme, authority: authority, path: path)
        }

        @Test(
            "The URL has scheme, authority and path as they are spelled",
            arguments: [
                ("https", "example.com", "/", "https://example.com/"),
                ("https", "example.com", "", "https://example.com/"),
                ("http", "example.com:8080", "/a?b", "http://example.com:8080/a?b"),
                ("HTTPS", "Example.COM", "/A", "HTTPS://Example.COM/A"),
                ("http", "[::1]:80", "/a", "http://[::1]:80/a"),
                ("https", "h", "/a%2Fb%2fc%20d?q=%C3%A4&r=a+b", "https://h/a%2Fb%2fc%20d?q=%C3%A4&r=a+b"),
                ("https", "h", "//a/../b/./c//", "https://h//a/../b/./c//"),
                ("https", "h", "/a;b=c,d:e@f!$&'()*+=", "https://h/a;b=c,d:e@f!$&'()*+="),
                ("https", "h", "/?", "https://h/?"),
                ("https", "h", "/a?b?c/d", "https://h/a?b?c/d"),
                ("https", "h", "/a b?c d", "https://h/a%20b?c%20d"),
                ("https", "h", "/ä", "https://h/%C3%A4"),
                ("https", "h", "/a b%20c", "https://h/a%20b%20c"),
                ("https", "h", "/http://other/", "https://h/http://other/"),
                ("https", "h", "/a[0]?b[]={\"c\"}|%5B", "https://h/a%5B0%5D?b%5B%5D=%7B%22c%22%7D%7C%5B"),
            ]
        )
        func target(_ scheme: String, _ authority: String, _ path: String, _ url: String) throws {
            let converted = try URLRequest(Self.request(scheme, authority, path))
            #expect(converted.url?.absoluteString == url)
        }

        @Test(
            "What cannot be a URL is refused as a bad request and not sent",
            arguments: [
                request(nil, "h", "/"), request("", "h", "/"), request("https", nil, "/"), request("https", "", "/"),
                request("https", "h", nil), request("https", "h", "*", method: .options),
                request("https", "h", ".evil.example/"), request("https", "h", "@evil.example/"),
                request("https", "h", "/a#b"), request("https", "h/a", "/"), request("https", "h?a", "/"),
                request("https", "h#", "/"), request("https", "h\\", "/"), request("https", "user@h", "/"),
                request("https", "h", "/", method: .connect), request("https://a/", "h", "/"),
                request("https", "h", "/100%"), request("https", "h", "/%zz?a b"),
            ]
        )
        func refusals(_ request: HTTPRequest) {
            let error = #expect(throws: ServiceError.self) { try URLRequest(request) }
            #expect(error?.code == .badRequest)
            #expect(error?.progress == .notSent)
        }

        @Test(
            "A refusal names the part that is at fault",
            arguments: [
                ("http", "[::bad", "/", "authority"), ("http", "h:-1", "/", "authority"),
                ("http", "h:80:80", "/", "authority"), ("http", "ü.example", "/", "authority"),
                ("http", "h", "/100%", "path"), ("http", "h:80", "/a?b=%zz", "path"), ("1http", "h", "/", "scheme"),
            ]
        )
        func fault(_ scheme: String, _ authority: String, _ path: String, _ part: String) {
            let error = #expect(throws: ServiceError.self) {
                try URLRequest(Self.request(scheme, authority, path))
            }
            let message = error?.message ?? ""
            #expect(["authority", "path", "scheme"].filter { message.contains($0) } == [part])
        }

        @Test(
            "With a base URL the path is appended to the base's path",
            arguments: [
                ("https://h", "/a", "https://h/a"), ("https://h/", "/a", "https://h/a"),
                ("https://h/api/v1", "/a?b=c", "https://h/api/v1/a?b=c"),
                ("https://h/api/v1/", "/a%2Fb", "https://h/api/v1/a%2Fb"),
                ("https://h/api?key=1#part", "/a", "https://h/api/a"),
                ("https://user:pw@h:8443/api", "/a", "https://user:pw@h:8443/api/a"),
                ("https://h/a%20b", "/c", "https://h/a%20b/c"), ("https://h/api", "", "https://h/api/"),
            ]
        )
        func base(_ base: String, _ path: String, _ url: String) throws {
            let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
            let baseURL: URL = try #require(URL(string: base))
            let converted = try URLRequest(request, baseURL: baseURL)
            #expect(converted.url?.absoluteString == url)
        }

        @Test("A base URL without a host is refused")
        func hostlessBase() throws {
            let base = try #require(URL(string: "/api"))
            let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/a")
            #expect(throws: ServiceError.self) { try URLRequest(request, baseURL: base) }
        }

        @Test("Repeated lines are joined with a comma, Cookie crumbs with a semicolon (RFC 9110 §5.3, RFC 9113 §8.2.3)")
        func joining() throws {
            var request = Self.request("https", "h", "/")
            for (name, value) in [("Accept", "a"), ("Cookie", "x=1"), ("accept", "b"), ("Cookie", "y=2")] {
                request.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
            }
            let converted = try URLRequest(request)
            #expect(converted.value(forHTTPHeaderField: "Accept") == "a, b")
            #expect(converted.value(forHTTPHeaderField: "Cookie") == "x=1; y=2")
        }

        @Test("The method can be any token", arguments: ["GET", "PATCH", "QUERY", "M-SEARCH", "x!#$%&'*+-.^_`|~0"])
        func methods(_ method: String) throws {
            let token = try #require(HTTPRequest.Method(method))
            #expect(try URLRequest(Self.request("https", "h", "/", method: token)).httpMethod == method)
        }

        @Test(
            "A URLRequest's URL is split at its delimiters, without user information and fragment",
            arguments: [
                ("https://h", "https", "h", "/"), ("https://h?a=b", "https", "h", "/?a=b"),
                ("http://h:8080/a%2Fb?c=%20#d", "http", "h:8080", "/a%2Fb?c=%20"),
                ("https://user:pw@h/a@b", "https", "h", "/a@b"), ("http://[::1]:80/", "http", "[::1]:80", "/"),
                ("https://h/?", "https", "h", "/?"), ("HTTP://H/A", "HTTP", "H", "/A"),
            ]
        )
        func fromURL(_ url: String, _ scheme: String, _ authority: String, _ path: String) throws {
            let request = try HTTPRequest(URLRequest(url: try #require(URL(string: url))))
            #expect(request == HTTPRequest(method: .get, scheme: scheme, authority: authority, path: path))
        }

        @Test(
            "A URLRequest without a host is refused",
            arguments: ["file:///a", "data:,a", "/a", "https:///a", "mailto:a@b"]
        )
        func hostless(_ url: String) throws {
            let request = URLRequest(url: try #require(URL(string: url)))
            #expect(throws: ServiceError.self) { try HTTPRequest(request) }
        }

        @Test("A relative URL is resolved against its base")
        func relative() throws {
            let url = try #require(URL(string: "b?c", relativeTo: URL(string: "https://h/a/")))
            #expect(try HTTPRequest(URLRequest(url: url)).path == "/a/b?c")
        }

        @Test(
            "Any request survives the way through URLRequest and back unchanged",
            arguments: [0, 1, 2, 9_111] as [UInt64]
        )
        func roundTrip(_ seed: UInt64) throws {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<300 {
                let request = try RandomRequest.make(using: &generator)
                let back = try HTTPRequest(URLRequest(request))
                #expect(back == request, "seed \(seed)")
            }
        }
    }

    /// Requests of any shape that a URL can hold.
    private enum RandomRequest {
        private static let pieces = [
            "a", "B", "0", "-", ".", "_", "~", "%20", "%2F", "%2f", "%C3%A4", "!", "$", "&", "'", "(", ")", "*", "+",
            ",",
            ";", "=", ":", "@", "/", "//", "/../", "/./",
        ]
        private static let values = ["", "a", "a, b", "ä", "\"x\"", "a=b; c=d", "*/*;q=0.1"]

        static func make(using generator: inout SeededGenerator) throws -> HTTPRequest {
            func pick<Value>(_ values: [Value]) -> Value {
                values[Int(generator.next() % UInt64(values.count))]
            }
            var path = "/"
            for _ in 0..<(generator.next() % 8) { path += pick(pieces) }
            if pick([true, false]) {
                path += "?"
                for _ in 0..<(generator.next() % 8) { path += pick(pieces + ["?"]) }
            }
            var fields = HTTPFields()
            for _ in 0..<(generator.next() % 5) {
                let name = try #require(HTTPField.Name(pick(["accept", "X-A", "x-b", "if-none-match", "cookie"])))
                guard !fields.contains(name) else { continue }
                fields.append(HTTPField(name: name, value: pick(values)))
            }
            return HTTPRequest(
                method: pick([.get, .post, .put, .delete, .head]),
                scheme: pick(["http", "https"]),
                authority: pick(["example.com", "h:8080", "127.0.0.1", "[::1]", "[2001:db8::1]:1", "a-b.c"]),
                path: path,
                headerFields: fields
            )
        }
    }
#endif
