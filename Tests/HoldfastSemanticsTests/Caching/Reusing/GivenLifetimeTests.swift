// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("Lifetimes that the server did not give")
struct GivenLifetimeTests {
    private func stored(_ status: Int, _ fields: HeaderFields, given: Int64? = nil) throws -> StoredResponse {
        StoredResponse(
            target: try target(),
            head: ResponseHead(status: StatusCode(status), fields: fields),
            requestTime: .noon,
            responseTime: .noon,
            givenLifetime: given
        )
    }

    @Test(
        "A call's lifetime applies if the server gives none, precedes a guess, and is not for errors (RFC 9111 §4.2.2)",
        arguments: [
            (200, [:], 30, FreshnessLifetime.Source.given), (200, ["Last-Modified": date(-1000)], 30, .given),
            (301, [:], 30, .given), (200, ["Cache-Control": "max-age=5"], 5, .maxAge),
            (200, ["Cache-Control": "max-age=0"], 0, .maxAge),
            (200, ["Expires": date(7), "Date": date(0)], 7, .expires),
            (200, ["Expires": "0"], 0, .expires), (404, ["Last-Modified": date(-1000)], 100, .heuristic),
            (500, [:], 0, .none), (302, [:], 0, .none), (302, ["Cache-Control": "public"], 30, .given),
        ] as [(Int, HeaderFields, Int64, FreshnessLifetime.Source)]
    )
    func given(status: Int, fields: HeaderFields, seconds: Int64, source: FreshnessLifetime.Source) throws {
        let response = try stored(status, fields, given: 30)
        #expect(response.freshnessLifetime(.private) == FreshnessLifetime(seconds: seconds, source: source))
        #expect(try stored(200, [:], given: -5).freshnessLifetime(.private).seconds == 0)
    }

    @Test("s-maxage gives a lifetime in shared mode only, where a call's lifetime yields to it")
    func sharedMaxAge() throws {
        let response = try stored(200, ["Cache-Control": "s-maxage=5"], given: 30)
        #expect(response.freshnessLifetime(.shared) == FreshnessLifetime(seconds: 5, source: .sMaxAge))
        #expect(response.freshnessLifetime(.private) == FreshnessLifetime(seconds: 30, source: .given))
    }

    @Test(
        "No lifetime exceeds the limit in the options, wherever it comes from",
        arguments: [
            (200, ["Cache-Control": "max-age=60"], 20, FreshnessLifetime.Source.maxAge),
            (200, ["Cache-Control": "max-age=9"], 9, .maxAge),
            (200, ["Expires": date(60), "Date": date(0)], 20, .expires),
            (200, ["Last-Modified": date(-10_000)], 20, .given), (500, [:], 20, .negative),
            (404, ["Cache-Control": "max-age=99999999999999999999"], 20, .maxAge),
        ] as [(Int, HeaderFields, Int64, FreshnessLifetime.Source)]
    )
    func limit(status: Int, fields: HeaderFields, seconds: Int64, source: FreshnessLifetime.Source) throws {
        var options = CacheOptions()
        options.maximumLifetime = .seconds(20)
        options.negativeLifetime = .seconds(60)
        let response = try stored(status, fields, given: 30)
        #expect(response.freshnessLifetime(options) == FreshnessLifetime(seconds: seconds, source: source))
        options.maximumLifetime = .seconds(-1)
        #expect(response.freshnessLifetime(options).seconds == 0)
    }

    @Test(
        "An error gets the options' lifetime only if it is about the resource and the server says nothing",
        arguments: [
            (400, [:], true), (403, [:], true), (404, [:], true), (409, [:], true), (410, [:], true), (451, [:], true),
            (500, [:], true), (502, [:], true), (503, [:], true), (504, [:], true), (599, [:], true),
            (401, [:], false), (406, [:], false), (407, [:], false), (408, [:], false), (412, [:], false),
            (416, [:], false), (421, [:], false), (425, [:], false), (426, [:], false), (428, [:], false),
            (429, [:], false), (431, [:], false), (511, [:], false), (200, [:], false), (302, [:], false),
            (503, ["Retry-After": "1"], false), (503, ["Retry-After": date(9)], false),
            (404, ["Cache-Control": "max-age=0"], false), (500, ["Expires": "0"], false),
        ] as [(Int, HeaderFields, Bool)]
    )
    func negative(status: Int, fields: HeaderFields, isNegative: Bool) throws {
        var options = CacheOptions()
        #expect(try stored(status, fields).freshnessLifetime(options).source != .negative)
        options.negativeLifetime = .seconds(10)
        let lifetime = try stored(status, fields).freshnessLifetime(options)
        #expect((lifetime == FreshnessLifetime(seconds: 10, source: .negative)) == isNegative)

        let request = RequestHead(method: .get, target: try target(), fields: [:])
        let head = ResponseHead(status: StatusCode(status), fields: fields)
        func verdict(_ options: CacheOptions) -> Storability {
            Storability.decide(request: request, response: head, directive: .default, options: options)
        }
        let statesLifetime = fields.contains(.cacheControl) || fields.contains(.expires)
        if isNegative { #expect(verdict(options) == .store(scope: .principal)) }
        // Without the option the rules are as ever.
        if !isNegative, !statesLifetime { #expect(verdict(options) == verdict(CacheOptions())) }
    }

    @Test(
        "RFC 9213 §2.2: whether an error states a lifetime is for the targeted field to say, where there is one",
        arguments: [("no-transform", true), ("no-store", false)]
    )
    func targeted(_ targeted: String, isStored: Bool) throws {
        var options = CacheOptions(mode: .shared)
        options.negativeLifetime = .seconds(10)
        let fields: HeaderFields = ["CDN-Cache-Control": targeted, "Cache-Control": "max-age=30"]
        let verdict = Storability.decide(
            request: RequestHead(method: .get, target: try target(), fields: [:]),
            response: ResponseHead(status: 500, fields: fields),
            directive: .default,
            options: options
        )
        #expect(verdict == (isStored ? .store(scope: .shared) : .doNotStore(.responseNoStore)))
    }

    @Test("RFC 6585 §3-§6: 428, 429, 431 and 511 are never stored, whatever they say", arguments: [428, 429, 431, 511])
    func unstorable(status: Int) throws {
        let verdict = Storability.decide(
            request: RequestHead(method: .get, target: try target(), fields: [:]),
            response: ResponseHead(status: StatusCode(status), fields: ["Cache-Control": "public, max-age=60"]),
            directive: .default,
            options: .private
        )
        #expect(verdict == .doNotStore(.statusForbidsStoring))
    }

    @Test(
        "RETRY.md §3.6.5: a stored Retry-After in seconds is reduced by the Age, one with a date stays",
        arguments: [
            (["30"], 12, ["18"]), (["30"], 30, ["0"]), (["30"], 900, ["0"]), ([date(60)], 12, [date(60)]),
            (["soon"], 12, ["soon"]), (["-5"], 12, ["-5"]), (["99999999999999999999"], 12, ["2147483636"]),
            (["30", "40"], 12, ["30", "40"]), ([], 12, []),
        ] as [([String], Int64, [String])]
    )
    func retryAfter(lines: [String], age: Int64, expected: [String]) throws {
        var fields: HeaderFields = ["Cache-Control": "max-age=60"]
        for line in lines { fields.append(.retryAfter, line) }
        let head = try stored(503, fields).responseHead(now: .noon.plus(age))
        #expect(head.fields.values(of: .retryAfter) == expected)
        #expect(head.fields[.age] == String(age))
        // Who takes the Age off a second time gets what is left, and not less.
        let left = RetryAfter.delay(head.withAgeInRetryAfter.fields, receivedAt: .noon.plus(age))
        if lines.count == 1, let once = Int64(expected[0]), (0...1_000).contains(once) {
            #expect(left == .seconds(once))
        }
    }
}
