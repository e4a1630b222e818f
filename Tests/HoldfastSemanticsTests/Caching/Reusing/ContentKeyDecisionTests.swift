// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("Reuse decisions for QUERY and opted-in POST (RFC 10008)")
struct ContentKeyDecisionTests {
    private func stored(_ method: RequestMethod) throws -> StoredResponse {
        StoredResponse(
            target: try target(),
            method: method,
            head: ResponseHead(status: .ok, fields: ["Cache-Control": "max-age=60"]),
            requestTime: .noon,
            responseTime: .noon
        )
    }

    private func reuses(_ request: RequestMethod, _ method: RequestMethod, hasContentKey: Bool) throws -> CacheReason {
        ReasonedReuseDecision(
            request: RequestHead(method: request, target: try target()),
            candidates: [try stored(method)],
            directive: .default,
            now: .noon,
            options: .private,
            secret: [],
            hasContentKey: hasContentKey
        ).reason
    }

    @Test(
        "Only a response to the same method is reused, except that HEAD uses a GET's (RFC 9111 §4)",
        arguments: [
            ("QUERY", "QUERY", true, .fresh), ("POST", "POST", true, .fresh), ("QUERY", "GET", true, .noVariant),
            ("POST", "GET", true, .noVariant), ("GET", "QUERY", false, .noVariant), ("GET", "POST", false, .noVariant),
            ("HEAD", "GET", false, .fresh), ("HEAD", "QUERY", false, .noVariant), ("POST", "QUERY", true, .noVariant),
            ("QUERY", "QUERY", false, .method), ("POST", "POST", false, .method),
        ] as [(RequestMethod, RequestMethod, Bool, CacheReason)]
    )
    func methods(request: RequestMethod, stored: RequestMethod, hasContentKey: Bool, reason: CacheReason) throws {
        #expect(try reuses(request, stored, hasContentKey: hasContentKey) == reason)
    }

    @Test("Their responses are stored if the content is in the key", arguments: ["QUERY", "POST"], [true, false])
    func storing(method: RequestMethod, hasContentKey: Bool) throws {
        let verdict = Storability.decide(
            request: RequestHead(method: method, target: try target()),
            response: ResponseHead(status: .ok, fields: ["Cache-Control": "max-age=60"]),
            directive: .default,
            options: .private,
            hasContentKey: hasContentKey
        )
        #expect(verdict == (hasContentKey ? .store(scope: .principal) : .doNotStore(.method)))
    }

    @Test(
        "RFC 10008: QUERY is safe and idempotent, keeps method and content over 301, 302, 307, 308, and a 303 is a GET"
    )
    func semantics() throws {
        #expect(RequestMethod.query.isSafe && RequestMethod.query.isIdempotent)
        let request = RequestHead(method: .query, target: try target())
        for (status, method, keepsBody) in [
            (301, RequestMethod.query, true), (302, .query, true), (303, .get, false), (307, .query, true),
            (308, .query, true),
        ] {
            let response = ResponseHead(status: StatusCode(status), fields: ["Location": "/b"])
            let next = try #require(Redirection.next(after: response, to: request))
            #expect(next.method == method && next.keepsBody == keepsBody, "\(status)")
        }
        let failed = AttemptOutcome.response(ResponseHead(status: .badGateway))
        let verdict = RetryRules.default.classify(FailedExchange(failed, method: .query, receivedAt: .distantPast))
        #expect(verdict == .ambiguous)
    }
}
