// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct ReuseDecisionTests {
    private static let secret: [UInt8] = [4, 2]

    private func stored(
        _ cacheControl: String = "max-age=60",
        _ fields: HeaderFields = [:],
        request: HeaderFields = [:],
        method: RequestMethod = .get,
        at seconds: Int64 = 0
    ) throws -> StoredResponse {
        let all = (["Cache-Control": cacheControl, "Date": date(seconds)] as HeaderFields).merging(fields)
        let nominated = NominatedFields(vary: all, request: request, secret: ReuseDecisionTests.secret)
        return StoredResponse(
            target: try target(),
            method: method,
            nominated: try #require(nominated),
            head: ResponseHead(status: .ok, fields: all),
            requestTime: .noon.plus(seconds),
            responseTime: .noon.plus(seconds)
        )
    }

    private func decide(
        _ candidates: [StoredResponse],
        _ fields: HeaderFields = [:],
        method: RequestMethod = .get,
        directive: CacheDirective = .default,
        after seconds: Int64 = 10,
        options: CacheOptions = .private
    ) throws -> ReuseDecision {
        ReuseDecision.decide(
            request: RequestHead(method: method, target: try target(), fields: fields),
            candidates: candidates,
            directive: directive,
            now: .noon.plus(seconds),
            options: options,
            secret: ReuseDecisionTests.secret
        )
    }

    @Test("RFC 9111 §4: fresh is reused, stale with a validator revalidated, stale without forwarded")
    func basics() throws {
        let plain = try stored()
        let tagged = try stored("max-age=60", ["ETag": "\"a\""])
        let dated = try stored("max-age=60", ["Last-Modified": date(-99)])
        #expect(try decide([plain]) == .reuse(candidate: 0, age: 10, isStale: false))
        #expect(try decide([plain], method: .head) == .reuse(candidate: 0, age: 10, isStale: false))
        #expect(try decide([plain], after: 60) == .forward(.stale))
        #expect(try decide([tagged], after: 60) == .revalidate(candidates: [0]))
        #expect(try decide([dated], after: 60) == .revalidate(candidates: [0]))
        #expect(try decide([]) == .forward(.notStored))
    }

    @Test(
        "Requests that the store does not answer",
        arguments: [
            ("POST", [:], .method), ("get", [:], .method), ("GET", ["If-Match": "\"a\""], .originCondition),
            ("HEAD", ["If-Unmodified-Since": "Thu, 17 Sep 2026 12:00:00 GMT"], .originCondition),
            ("GET", ["Cache-Control": "no-store"], .requestNoStore),
        ] as [(String, HeaderFields, ReuseDecision.Reason)]
    )
    func bypass(method: String, fields: HeaderFields, reason: ReuseDecision.Reason) throws {
        let candidate = try stored()
        let method = RequestMethod(rawValue: method)
        #expect(try decide([candidate], fields, method: method) == .forward(reason))
        #expect(try decide([candidate], fields, method: method, directive: .onlyIfCached) == .unsatisfiable(reason))
    }

    @Test(
        "RFC 9111 §5.2.1: directives in the request's Cache-Control",
        arguments: [
            ("no-cache", 10, false), ("max-age=10", 10, true), ("max-age=9", 10, false), ("max-age=0", 0, false),
            ("min-fresh=50", 10, true), ("min-fresh=51", 10, false), ("max-stale", 9999, true),
            ("max-stale=5", 65, true),
            ("max-stale=5", 66, false), ("max-stale=0", 60, false), ("max-stale=x", 61, false),
            ("max-stale=5", 60, true),
            ("max-age=5, max-stale=5", 10, true), ("max-age=5, max-stale=5", 11, false),
            ("min-fresh=10, max-stale", 65, false), ("immutable", 10, true),
        ]
    )
    func requestDirectives(cacheControl: String, age: Int64, isReused: Bool) throws {
        let decision = try decide([try stored()], ["Cache-Control": cacheControl], after: age)
        if isReused {
            #expect(decision == .reuse(candidate: 0, age: age, isStale: age >= 60))
        } else {
            #expect(decision == .forward(age >= 60 ? .stale : .mustValidate))
        }
    }

    @Test("RFC 9111 §5.4: Pragma in a request")
    func pragma() throws {
        #expect(try decide([try stored()], ["Pragma": "no-cache"]) == .forward(.mustValidate))
        let fields: HeaderFields = ["Pragma": "no-cache", "Cache-Control": "max-age=99"]
        #expect(try decide([try stored()], fields) == .reuse(candidate: 0, age: 10, isStale: false))
    }

    @Test("Call directives")
    func callDirectives() throws {
        let tagged = try stored("max-age=60", ["ETag": "\"a\""])
        #expect(try decide([tagged], directive: .reload) == .forward(.reload))
        #expect(try decide([tagged], directive: .noStore) == .forward(.requestNoStore))
        #expect(try decide([tagged], directive: .revalidate) == .revalidate(candidates: [0]))
        #expect(try decide([tagged], directive: .onlyIfCached) == .reuse(candidate: 0, age: 10, isStale: false))
        #expect(try decide([tagged], directive: .onlyIfCached, after: 70) == .unsatisfiable(.stale))
        #expect(try decide([], directive: .onlyIfCached) == .unsatisfiable(.notStored))
        #expect(try decide([], ["Cache-Control": "only-if-cached"]) == .unsatisfiable(.notStored))
        let stale = ReuseDecision.reuse(candidate: 0, age: 70, isStale: true)
        #expect(try decide([tagged], directive: .maxStale(.seconds(10)), after: 70) == stale)
        #expect(try decide([tagged], directive: .maxStale(.seconds(9)), after: 70) == .revalidate(candidates: [0]))
        let narrowed = CacheDirective(maxStale: .zero)
        #expect(try decide([tagged], ["Cache-Control": "max-stale"], directive: narrowed, after: 70) != stale)
        #expect(try decide([tagged], directive: CacheDirective(minFresh: .seconds(51))) == .revalidate(candidates: [0]))
        let strict = try stored("no-cache, must-revalidate, max-age=1")
        let anything = CacheDirective(ignoresAge: true)
        #expect(try decide([strict], directive: anything, after: 70) == stale)
        // Kept by another cache on the same store, for a lifetime that it fixes.
        let forbidden = try stored("no-store, max-age=60")
        #expect(try decide([forbidden], directive: anything) == .forward(.mustValidate))
        var fixing = CacheOptions.private
        fixing.fixedLifetime = .seconds(60)
        let fresh = ReuseDecision.reuse(candidate: 0, age: 10, isStale: false)
        #expect(try decide([forbidden], directive: anything, options: fixing) == fresh)
    }

    @Test(
        "RFC 9111 §4.2.4: the response can forbid being served stale",
        arguments: [
            ("must-revalidate, max-age=60", false, false), ("proxy-revalidate, max-age=60", true, false),
            ("s-maxage=60, max-age=60", true, false), ("max-age=60", true, true),
            ("no-cache=\"a\", max-age=60", true, true),
        ]
    )
    func forbidsStale(cacheControl: String, asPrivate: Bool, asShared: Bool) throws {
        let candidate = try stored(cacheControl)
        let stale = ReuseDecision.reuse(candidate: 0, age: 70, isStale: true)
        let directive = CacheDirective.maxStale(.seconds(100))
        #expect(try (decide([candidate], directive: directive, after: 70) == stale) == asPrivate)
        #expect(try (decide([candidate], directive: directive, after: 70, options: .shared) == stale) == asShared)
        #expect(try decide([candidate], after: 10) == .reuse(candidate: 0, age: 10, isStale: false))
    }

    @Test("RFC 9111 §5.2.2.4: a no-cache response is revalidated first")
    func noCacheResponse() throws {
        let candidate = try stored("no-cache, max-age=60", ["ETag": "\"a\""])
        #expect(try decide([candidate]) == .revalidate(candidates: [0]))
        #expect(try decide([candidate], directive: .onlyIfCached) == .unsatisfiable(.mustValidate))
    }

    @Test(
        "RFC 5861 §3: stale-while-revalidate is not for a caller that limits staleness, nor where nothing may be sent",
        arguments: [
            ([:], .default, .reuseWhileRevalidating(candidates: [0], age: 70)),
            (["Cache-Control": "max-stale=9"], .default, .revalidate(candidates: [0])),
            (["Cache-Control": "max-stale=10"], .default, .reuse(candidate: 0, age: 70, isStale: true)),
            ([:], .maxStale(.seconds(9)), .revalidate(candidates: [0])),
            ([:], .maxStale(.zero), .revalidate(candidates: [0])),
            (["Cache-Control": "only-if-cached"], .default, .unsatisfiable(.stale)),
            ([:], .onlyIfCached, .unsatisfiable(.stale)),
            (
                [:], CacheDirective(onlyIfCached: true, maxStale: .seconds(10)),
                .reuse(candidate: 0, age: 70, isStale: true)
            ),
        ] as [(HeaderFields, CacheDirective, ReuseDecision)]
    )
    func whileRevalidating(fields: HeaderFields, directive: CacheDirective, expected: ReuseDecision) throws {
        let candidate = try stored("max-age=60, stale-while-revalidate=100", ["ETag": "\"a\""])
        #expect(try decide([candidate], fields, directive: directive, after: 70) == expected)
    }

    @Test("RFC 9111 §4.1: a variant is selected by its nominated fields, the latest Date first")
    func variants() throws {
        let english = try stored(
            "max-age=60",
            ["Vary": "Accept-Language", "ETag": "\"en\""],
            request: ["Accept-Language": "en"]
        )
        let german = try stored(
            "max-age=60",
            ["Vary": "Accept-Language", "ETag": "\"de\""],
            request: ["Accept-Language": "de"]
        )
        let later = try stored("max-age=60", ["ETag": "\"new\""], at: 5)
        let fields: HeaderFields = ["Accept-Language": "EN"]
        #expect(try decide([german, english], fields) == .reuse(candidate: 1, age: 10, isStale: false))
        #expect(try decide([german, english], ["Accept-Language": "fr"]) == .forward(.noVariant))
        #expect(try decide([german, english]) == .forward(.noVariant))
        #expect(try decide([english, later, german], fields) == .reuse(candidate: 1, age: 5, isStale: false))
        // Only the tags of those that match are sent (RFC 9111 §4.3.1).
        #expect(try decide([english, german, later], fields, after: 99) == .revalidate(candidates: [2, 0]))
        let few = CacheOptions(maximumVariants: 1)
        #expect(try decide([english, german, later], fields, after: 99, options: few) == .revalidate(candidates: [2]))
    }

    @Test("RFC 9111 §4: a stored HEAD response does not answer a GET")
    func storedHead() throws {
        let head = try stored(method: .head)
        #expect(try decide([head]) == .forward(.noVariant))
        #expect(try decide([head], method: .head) == .reuse(candidate: 0, age: 10, isStale: false))
    }

    @Test("RFC 9111 §5.2.2.7: a shared cache does not use what a private one has stored as private")
    func privateInShared() throws {
        let own = try stored("private, max-age=60")
        let tagged = try stored("private, max-age=60", ["ETag": "\"a\""])
        let some = try stored("private=\"Set-Cookie\", max-age=60")
        #expect(try decide([own]) == .reuse(candidate: 0, age: 10, isStale: false))
        #expect(try decide([own], options: .shared) == .forward(.mustValidate))
        #expect(try decide([tagged], options: .shared) == .revalidate(candidates: [0]))
        #expect(try decide([some], options: .shared) == .reuse(candidate: 0, age: 10, isStale: false))
    }

    @Test("After the clock went back responses are still reused, and a clock at its limits never traps")
    func clocks() throws {
        let candidate = try stored()
        #expect(try decide([candidate], after: -500) == .reuse(candidate: 0, age: 0, isStale: false))
        #expect(try decide([candidate], after: Int64.max) == .forward(.stale))
    }

    @Test("RFC 9111 §5.2.2.7: a shared cache does not use fields that a private one has stored as private")
    func privateFieldsInShared() throws {
        let control = "private=\"Set-Cookie\", max-age=60"
        let own = try stored(control, ["Set-Cookie": "sid=1"])
        let tagged = try stored(control, ["Set-Cookie": "sid=1", "ETag": "\"a\""])
        #expect(try decide([own]) == .reuse(candidate: 0, age: 10, isStale: false))
        #expect(try decide([own], options: .shared) == .forward(.mustValidate))
        #expect(try decide([tagged], options: .shared) == .revalidate(candidates: [0]))
        // What a shared cache has stored lacks the field, and is used.
        #expect(try decide([try stored(control)], options: .shared) == .reuse(candidate: 0, age: 10, isStale: false))
    }
}
