// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct RedirectionTests {
    private func next(
        _ status: StatusCode,
        _ method: RequestMethod = .get,
        location: String? = "/b",
        from uri: String = "https://user@example.com/a"
    ) throws -> Redirection? {
        var response = ResponseHead(status: status)
        response.fields[.location] = location
        return Redirection.next(after: response, to: RequestHead(method: method, target: try TargetURI(uri)))
    }

    @Test(
        "RFC 9110 §15.4: which method is used next",
        arguments: [
            (301, "GET", "GET", true), (301, "POST", "GET", false), (302, "POST", "GET", false),
            (302, "PUT", "PUT", true),
            (301, "DELETE", "DELETE", true), (303, "POST", "GET", false), (303, "PUT", "GET", false),
            (303, "HEAD", "HEAD", false), (307, "POST", "POST", true), (308, "POST", "POST", true),
            (308, "PATCH", "PATCH", true), (300, "GET", "GET", true), (302, "HEAD", "HEAD", true),
        ]
    )
    func methods(status: Int, before: String, after: String, keepsBody: Bool) throws {
        let redirection = try #require(try next(StatusCode(status), RequestMethod(rawValue: before)))
        #expect(redirection.method.rawValue == after)
        #expect(redirection.keepsBody == keepsBody)
        #expect(redirection.location == "https://example.com/b")
        #expect(!redirection.crossesOrigin)
    }

    @Test("RFC 9110 §15.4: responses that are returned", arguments: [200, 201, 304, 305, 306, 309, 399, 404, 503])
    func noRedirect(status: Int) throws {
        #expect(try next(StatusCode(status)) == nil)
    }

    @Test(
        "A response with a missing or unusable Location is returned",
        arguments: [
            nil, "", "ftp://h/", "mailto:a@b", "http://", "http://h:99999/", "//a[b]/", "//a%/", "/a\u{7F}",
        ] as [String?]
    )
    func unusableLocation(location: String?) throws {
        #expect(try next(.found, location: location) == nil)
    }

    @Test func unsafeMethodDoesNotFollowAChoice() throws {
        #expect(try next(.multipleChoices, .post) == nil)
    }

    @Test func severalLocations() throws {
        let request = RequestHead(target: try target())
        let same = ResponseHead(status: .found, fields: ["Location": "/b", "location": "/b"])
        #expect(Redirection.next(after: same, to: request)?.target.path == "/b")
        let different = ResponseHead(status: .found, fields: ["Location": "/b", "location": "/c"])
        #expect(Redirection.next(after: different, to: request) == nil)
    }

    @Test(
        "The next target is spelled as the server spelled it",
        arguments: [
            ("b?x=%7e#f", "https://example.com/b?x=%7e", "https://example.com/b?x=~"),
            ("HTTPS://u:p@Other.example:443", "HTTPS://Other.example:443", "https://other.example/"),
            ("/a b/é", "https://example.com/a%20b/%C3%A9", "https://example.com/a%20b/%C3%A9"),
            ("/x?page[n]=2", "https://example.com/x?page%5Bn%5D=2", "https://example.com/x?page%5Bn%5D=2"),
            ("/p[1]", "https://example.com/p%5B1%5D", "https://example.com/p%5B1%5D"),
            ("/x?q=100%", "https://example.com/x?q=100%25", "https://example.com/x?q=100%25"),
            ("/%zz?%7e", "https://example.com/%25zz?%7e", "https://example.com/%25zz?~"),
            ("http://[::1]/[1]", "http://[::1]/%5B1%5D", "http://[::1]/%5B1%5D"),
        ]
    )
    func spelling(location: String, sent: String, canonical: String) throws {
        let redirection = try #require(try next(.found, location: location))
        #expect(redirection.location == sent)
        #expect(redirection.target.canonical == canonical)
        #expect(redirection.target.userinfo == nil)
    }

    @Test(
        "RFC 9110 §15.4: credentials are not sent to another origin",
        arguments: [
            ("https://example.com:443/b", false), ("http://example.com/b", true), ("https://www.example.com/b", true),
            ("https://example.com:444/b", true), ("//example.com/b", false),
        ]
    )
    func origins(location: String, crosses: Bool) throws {
        let redirection = try #require(try next(.temporaryRedirect, location: location))
        #expect(redirection.crossesOrigin == crosses)
        let fields: HeaderFields = [
            "Authorization": "a", "Cookie": "b", "Proxy-Authorization": "c", "Idempotency-Key": "d",
            "If-None-Match": "e", "If-Range": "f", "Host": "g", "Origin": "k", "Accept": "h",
            "Content-Type": "i",
        ]
        let kept = redirection.fields(from: fields).map(\.name.canonicalName)
        #expect(kept == (crosses ? ["accept", "content-type"] : fields.map(\.name.canonicalName)))
    }

    @Test(
        "RFC 9110 §13.1: a request is not sent to another origin without the condition that protects it",
        arguments: [
            (308, "PUT", "If-Match", false), (307, "POST", "If-None-Match", false), (308, "PATCH", "If-Range", false),
            (301, "DELETE", "If-Unmodified-Since", false), (302, "GET", "If-Match", false),
            (302, "HEAD", "If-Unmodified-Since", false), (302, "GET", "If-None-Match", true),
            (302, "GET", "If-Range", true), (303, "PUT", "If-Match", true), (302, "POST", "If-Match", true),
            (308, "PUT", "Range", true),
        ]
    )
    func conditions(status: Int, method: String, condition: String, isFollowed: Bool) throws {
        let name = try #require(FieldName(condition))
        let request = RequestHead(
            method: RequestMethod(rawValue: method),
            target: try target(),
            fields: [name: "\"a\""]
        )
        for (location, isExpected) in [("https://other.example/b", isFollowed), ("/b", true)] {
            let response = ResponseHead(status: StatusCode(status), fields: ["Location": location])
            #expect((Redirection.next(after: response, to: request) != nil) == isExpected, "\(location)")
        }
    }

    @Test("RFC 9110 §13.1.5: a Range does not go to another origin without its If-Range")
    func rangeAcrossOrigins() throws {
        let fields: HeaderFields = ["Range": "bytes=5-", "If-Range": "\"a\""]
        let foreign = try #require(try next(.found, location: "https://other.example/b"))
        #expect(foreign.fields(from: fields).isEmpty)
        #expect(foreign.fields(from: ["Range": "bytes=5-"]).contains(.range))
        let own = try #require(try next(.seeOther))
        #expect(own.fields(from: fields) == fields)
    }

    @Test("RFC 9110 §15.4: content fields are dropped together with the content, and conditions with the method")
    func contentFields() throws {
        let redirection = try #require(try next(.seeOther, .post))
        let kept = redirection.fields(from: [
            "Content-Type": "a", "content-length": "3", "Content-Digest": "b", "Transfer-Encoding": "chunked",
            "Expect": "100-continue", "Idempotency-Key": "k", "Authorization": "c", "Accept": "d", "Digest": "e",
            "Repr-Digest": "f", "Last-Modified": "g", "If-Match": "h", "If-None-Match": "i", "Range": "bytes=5-",
        ])
        #expect(kept.map(\.name) == [.authorization, .accept])
    }
}
