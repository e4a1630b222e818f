// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct InvalidationTests {
    private func targets(
        _ method: RequestMethod,
        _ status: StatusCode,
        _ fields: HeaderFields = [:]
    ) throws -> [String] {
        Invalidation.targets(
            request: RequestHead(method: method, target: try target("https://h/a?b")),
            response: ResponseHead(status: status, fields: fields)
        ).map(\.canonical)
    }

    @Test(
        "RFC 9111 §4.4: unsafe and unknown methods invalidate unless the response is an error",
        arguments: [
            ("POST", 200, true), ("PUT", 204, true), ("DELETE", 302, true), ("PATCH", 299, true), ("PURGE", 200, true),
            ("get", 200, true), ("GET", 200, false), ("HEAD", 200, false), ("OPTIONS", 200, false),
            ("QUERY", 200, false),
            ("POST", 400, false), ("POST", 500, false), ("POST", 102, false), ("POST", 600, false),
        ]
    )
    func methods(method: String, status: Int, invalidates: Bool) throws {
        let found = try targets(RequestMethod(rawValue: method), StatusCode(status))
        #expect(found == (invalidates ? ["https://h/a?b"] : []))
    }

    @Test(
        "RETRY §3.6.6: an attempt is ambiguous unless nothing was sent or the origin itself answered",
        arguments: [
            (.response(ResponseHead(status: 502)), true), (.response(ResponseHead(status: 504)), true),
            (.response(ResponseHead(status: 500)), false), (.response(ResponseHead(status: 503)), false),
            (.response(ResponseHead(status: 200)), false), (.response(ResponseHead(status: 412)), false),
            (.failure(AttemptFailure(kind: .connect, progress: .notSent)), false),
            (.failure(AttemptFailure(kind: .throttled, progress: .notSent)), false),
            (.failure(AttemptFailure(kind: .connectionLost, progress: .headSent)), true),
            (.failure(AttemptFailure(kind: .timeout, progress: .bodySent)), true),
        ] as [(AttemptOutcome, Bool)]
    )
    func ambiguous(_ outcome: AttemptOutcome, _ isAmbiguous: Bool) {
        #expect(Invalidation.isAmbiguous(outcome) == isAmbiguous)
    }

    @Test(
        "RETRY §3.6.6: after an ambiguous attempt with an unsafe method, an error invalidates too",
        arguments: [true, false]
    )
    func afterAmbiguity(_ mayBeApplied: Bool) throws {
        for method in [RequestMethod.put, .get] {
            let request = RequestHead(method: method, target: try target("https://h/a"))
            let expected = mayBeApplied && method == .put ? [request.target] : []
            let refused = AttemptFailure(kind: .connect, progress: .notSent)
            #expect(
                Invalidation.targets(
                    request: request,
                    response: ResponseHead(status: .serviceUnavailable, fields: ["Location": "b"]),
                    mayBeApplied: mayBeApplied
                ) == expected
            )
            #expect(
                Invalidation.targets(request: request, failure: refused, wasSent: true, mayBeApplied: mayBeApplied)
                    == expected
            )
        }
    }

    @Test("RFC 9111 §4.4: Location and Content-Location of the same origin")
    func locations() throws {
        let found = try targets(
            .post,
            .created,
            ["Location": "c", "Content-Location": "https://H:443/d", "location": "https://other/e"]
        )
        #expect(found == ["https://h/a?b", "https://h/c", "https://h/d"])
        #expect(
            try targets(.post, .ok, ["Location": "?b", "Content-Location": "/%zz"]) == [
                "https://h/a?b", "https://h/%25zz",
            ]
        )
        #expect(try targets(.post, .ok, ["Location": "http://h/c", "Content-Location": ""]) == ["https://h/a?b"])
    }

    @Test func manyLinesAreBounded() throws {
        let lines = (0..<100).map { HeaderFields.Line(name: .location, value: "/\($0)") }
        #expect(try targets(.post, .ok, HeaderFields(lines)).count == 8)
    }
}
