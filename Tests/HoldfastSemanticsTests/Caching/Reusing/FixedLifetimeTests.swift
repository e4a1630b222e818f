// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite("A fixed lifetime, whatever servers say")
struct FixedLifetimeTests {
    private static func options(_ fixed: Duration, _ mode: CacheOptions.Mode = .private) -> CacheOptions {
        var options = CacheOptions(mode: mode)
        options.fixedLifetime = fixed
        return options
    }

    private func stored(_ fields: HeaderFields) throws -> StoredResponse {
        StoredResponse(
            target: try target(),
            head: ResponseHead(status: .ok, fields: fields),
            requestTime: .noon.plus(-9),
            responseTime: .noon
        )
    }

    @Test(
        "It replaces every lifetime, and the age counts from the time of receipt",
        arguments: [
            [:], ["Cache-Control": "max-age=5"], ["Cache-Control": "no-store, no-cache"], ["Expires": "0"],
            ["Age": "4000"], ["Date": date(-9000), "Cache-Control": "max-age=1"],
        ] as [HeaderFields]
    )
    func freshness(fields: HeaderFields) throws {
        let response = try stored(fields)
        let options = Self.options(.seconds(30))
        #expect(response.freshnessLifetime(options) == FreshnessLifetime(seconds: 30, source: .fixed))
        #expect(response.isFresh(now: .noon.plus(30), options: options))
        #expect(!response.isFresh(now: Timestamp.noon.plus(30) + .milliseconds(1), options: options))
        #expect(response.isFresh(now: .noon.plus(-100), options: options))
        #expect(response.isFresh(now: Timestamp.noon + .milliseconds(1), options: Self.options(.milliseconds(1))))
    }

    @Test("A negative lifetime counts as zero, and no lifetime exceeds the limit for all of them")
    func limits() throws {
        var options = Self.options(.seconds(-3))
        #expect(options.fixedLifetime == .zero)
        options.fixedLifetime = .seconds(30)
        options.maximumLifetime = .seconds(10)
        let response = try stored([:])
        #expect(response.freshnessLifetime(options) == FreshnessLifetime(seconds: 10, source: .fixed))
        #expect(response.isFresh(now: .noon.plus(10), options: options))
        #expect(!response.isFresh(now: .noon.plus(11), options: options))
        options.fixedLifetime = .seconds(Int64.max)
        options.maximumLifetime = nil
        #expect(response.isFresh(now: .distantFuture, options: options))
        #expect(response.uselessAfter(options) == .distantFuture)
    }

    @Test("After it, an entry is useless if it has no validator and must not be served stale; any other is kept")
    func uselessAfter() throws {
        let options = Self.options(.seconds(30))
        let end = Timestamp.noon.plus(30) + .milliseconds(1)
        #expect(try stored(["Cache-Control": "no-store"]).uselessAfter(options) == end)
        #expect(try stored(["Cache-Control": "must-revalidate"]).uselessAfter(options) == end)
        #expect(try stored([:]).uselessAfter(options) == end + options.retention)
        #expect(
            try stored(["Cache-Control": "no-store", "ETag": "\"a\""]).uselessAfter(options) == end + options.retention
        )
    }

    @Test(
        "A response's freshness directives do not prevent storing; directives about whom it is for do",
        arguments: [
            ("GET", 200, "no-store", [:], nil, nil), ("GET", 299, "must-understand", [:], nil, nil),
            ("GET", 204, "max-age=0", [:], nil, nil), ("GET", 200, "private", [:], nil, .privateResponse),
            ("GET", 200, "no-store", ["Authorization": "a"], nil, .authorization),
            ("GET", 200, "public", ["Authorization": "a"], nil, nil),
            ("GET", 200, "", ["Cache-Control": "no-store"], .requestNoStore, .requestNoStore),
            ("POST", 200, "max-age=60", [:], .method, .method), ("HEAD", 200, "max-age=60", [:], .method, .method),
            ("GET", 404, "max-age=60", [:], .status, .status), ("GET", 301, "max-age=60", [:], .status, .status),
            ("GET", 304, "max-age=60", [:], .status, .status), ("GET", 206, "", [:], .partialContent, .partialContent),
        ] as [(String, Int, String, HeaderFields, CacheReason?, CacheReason?)]
    )
    func storability(
        method: String,
        status: Int,
        cacheControl: String,
        fields: HeaderFields,
        alone: CacheReason?,
        shared: CacheReason?
    ) throws {
        for (mode, expected) in [(CacheOptions.Mode.private, alone), (.shared, shared)] {
            let verdict = Storability.decide(
                request: RequestHead(method: RequestMethod(rawValue: method), target: try target(), fields: fields),
                response: ResponseHead(
                    status: StatusCode(status),
                    fields: ["Cache-Control": cacheControl, "Content-Location": "https://example.com/a"]
                ),
                directive: .default,
                options: Self.options(.seconds(30), mode)
            )
            if let expected {
                #expect(verdict == .doNotStore(expected), "\(mode)")
            } else {
                guard case .store = verdict else {
                    Issue.record("\(mode): \(verdict)")
                    continue
                }
            }
        }
    }

    @Test("`Vary: *` is not stored")
    func varyStar() throws {
        let verdict = Storability.decide(
            request: RequestHead(method: .get, target: try target(), fields: [:]),
            response: ResponseHead(status: .ok, fields: ["Vary": "*"]),
            directive: .default,
            options: Self.options(.seconds(30))
        )
        #expect(verdict == .doNotStore(.varyStar))
    }

    @Test(
        "Stale responses are used as the options say; the response can forbid it but not allow it",
        arguments: [
            ("", "RED"), ("stale-while-revalidate=0, stale-if-error=0", "RED"), ("no-store", ""), ("no-cache", ""),
            ("must-revalidate", ""),
        ]
    )
    func staleAllowance(cacheControl: String, expected: String) throws {
        var options = Self.options(.seconds(10))
        options.staleWhenDisconnected = .zero
        let all = "stale-while-revalidate=100, stale-if-error=100"
        let told = try StaleAllowanceTests.decide(all, age: 20, options: options)
        #expect(StaleAllowanceTests.allowance(told) == "")
        options.staleWhileRevalidate = .seconds(100)
        options.staleIfError = .seconds(100)
        let reasoned = try StaleAllowanceTests.decide(cacheControl, age: 20, options: options)
        #expect(StaleAllowanceTests.allowance(reasoned) == expected)
    }

    @Test("Without it, a HEAD that confirms the response resets its age; with it the content's age keeps growing")
    func headUpdate() throws {
        for fixed in [Duration.seconds(30), nil] {
            var options = CacheOptions()
            options.fixedLifetime = fixed
            let update = headAdmission(
                of: ResponseHead(status: .ok, fields: ["ETag": "\"a\"", "Cache-Control": "max-age=9"]),
                about: try stored(["ETag": "\"a\"", "Cache-Control": "max-age=9"]),
                to: RequestHead(method: .head, target: try target(), fields: [:]),
                options: options
            )
            #expect((update.action == .pass) == (fixed != nil))
        }
    }

    @Test("Nothing is lent to a request with a Cookie")
    func borrowing() throws {
        let response = try stored(["Cache-Control": "public, max-age=60"])
        #expect(response.mayAnswerCookies(now: .noon, options: .private))
        #expect(!response.mayAnswerCookies(now: .noon, options: Self.options(.seconds(60))))
    }

    @Test(
        "RFC 9111 §5.2.2.3: what was kept with a status that must be understood is not used without the fixed lifetime",
        arguments: ["must-understand, max-age=60", "must-understand, no-store, max-age=60"]
    )
    func notUnderstood(cacheControl: String) throws {
        let kept = StoredResponse(
            target: try target(),
            head: ResponseHead(status: 299, fields: ["Cache-Control": cacheControl, "Date": date(0)]),
            requestTime: .noon,
            responseTime: .noon
        )
        func decide(_ options: CacheOptions) throws -> ReuseDecision {
            ReuseDecision.decide(
                request: RequestHead(target: try target()),
                candidates: [kept],
                directive: .default,
                now: .noon.plus(10),
                options: options,
                secret: [1]
            )
        }
        #expect(try decide(.private) == .forward(.mustValidate))
        #expect(kept.forbidsStale(.private))
        #expect(try decide(Self.options(.seconds(60))) == .reuse(candidate: 0, age: 10, isStale: false))
    }
}
