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
            nil, "", "ftp://h/", "mailto:a@b", "http://", "http://h:99999/", "/%zz",
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
            "If-None-Match": "e", "If-Range": "f", "Host": "g", "Accept": "h", "Content-Type": "i",
        ]
        let kept = redirection.fields(from: fields).map(\.name.canonicalName)
        #expect(kept == (crosses ? ["accept", "content-type"] : fields.map(\.name.canonicalName)))
    }

    @Test("RFC 9110 §15.4: content fields are dropped together with the content")
    func contentFields() throws {
        let redirection = try #require(try next(.seeOther, .post))
        let kept = redirection.fields(from: [
            "Content-Type": "a", "content-length": "3", "Content-Digest": "b", "Transfer-Encoding": "chunked",
            "Expect": "100-continue", "Idempotency-Key": "k", "Authorization": "c", "Accept": "d",
        ])
        #expect(kept.map(\.name) == [.authorization, .accept])
    }
}
