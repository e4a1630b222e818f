// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct StorabilityTests {
    private func decide(
        _ fields: HeaderFields = ["Cache-Control": "max-age=60"],
        status: StatusCode = .ok,
        method: RequestMethod = .get,
        request: HeaderFields = [:],
        directive: CacheDirective = .default,
        options: CacheOptions = .private
    ) throws -> Storability {
        Storability.decide(
            request: RequestHead(method: method, target: try target(), fields: request),
            response: ResponseHead(status: status, fields: fields),
            directive: directive,
            options: options
        )
    }

    @Test(
        "RFC 9111 §3: only final responses to GET are stored",
        arguments: [
            ("GET", 200, nil), ("HEAD", 200, .method), ("POST", 200, .method), ("get", 200, .method),
            ("GET", 103, .status), ("GET", 0, .status), ("GET", 600, .status), ("GET", 206, .partialContent),
            ("GET", 304, .notModified), ("GET", 599, nil), ("GET", 404, nil),
        ] as [(String, Int, Storability.Reason?)]
    )
    func methodAndStatus(method: String, status: Int, reason: Storability.Reason?) throws {
        let verdict = try decide(status: StatusCode(status), method: RequestMethod(rawValue: method))
        #expect(verdict == (reason.map { .doNotStore($0) } ?? .store(scope: .principal)))
    }

    @Test(
        "RFC 6585 §3–§6, RFC 8470 §5.2: 425, 428, 429, 431 and 511 are not stored, whatever their freshness",
        arguments: [425, 428, 429, 431, 511],
        ["max-age=60", "public, s-maxage=60", "must-understand, no-store, max-age=60"]
    )
    func forbidden(status: Int, cacheControl: String) throws {
        for options in [CacheOptions.private, .shared] {
            let fields: HeaderFields = ["Cache-Control": cacheControl]
            let verdict = try decide(fields, status: StatusCode(status), options: options)
            #expect(verdict == .doNotStore(.statusForbidsStoring))
        }
    }

    @Test(
        "RFC 9111 §3: any other final status with a lifetime is stored, even an unknown one",
        arguments: (200...599).filter { ![206, 304, 425, 428, 429, 431, 511].contains($0) }
    )
    func anyStatus(status: Int) throws {
        #expect(try decide(status: StatusCode(status)) == .store(scope: .principal))
        #expect(try decide(status: StatusCode(status), options: .shared) == .store(scope: .shared))
    }

    @Test(
        "RFC 9110 §9.3.3: a POST's 200 is stored if it has explicit freshness and represents the target",
        arguments: [
            (200, ["Cache-Control": "max-age=9", "Content-Location": "https://example.com/a"], true),
            (200, ["Cache-Control": "max-age=9", "Content-Location": "/a"], true),
            (200, ["Expires": "x", "Content-Location": "a"], true),
            (200, ["Cache-Control": "max-age=9", "Content-Location": "/b"], false),
            (200, ["Cache-Control": "max-age=9", "Content-Location": "https://other.example/a"], false),
            (200, ["Cache-Control": "max-age=9", "Content-Location": ""], false),
            (200, ["Cache-Control": "max-age=9", "Content-Location": "/a", "content-location": "/a"], false),
            (200, ["Cache-Control": "max-age=9"], false), (200, ["Content-Location": "/a"], false),
            (200, ["Last-Modified": date(-99), "Content-Location": "/a"], false),
            (200, ["Cache-Control": "public", "Content-Location": "/a"], false),
            (201, ["Cache-Control": "max-age=9", "Content-Location": "/a"], false),
            (404, ["Cache-Control": "max-age=9", "Content-Location": "/a"], false),
        ] as [(Int, HeaderFields, Bool)]
    )
    func post(status: Int, fields: HeaderFields, isStored: Bool) throws {
        let verdict = try decide(fields, status: StatusCode(status), method: .post)
        #expect(verdict == (isStored ? .store(scope: .principal) : .doNotStore(.method)))
        #expect(try decide(fields, status: StatusCode(status), method: .put) == .doNotStore(.method))
    }

    @Test("RFC 9111 §5.2.1.5, §5.2.2.5: no-store in the request or the response")
    func noStore() throws {
        #expect(try decide(request: ["Cache-Control": "no-store"]) == .doNotStore(.requestNoStore))
        #expect(try decide(directive: .noStore) == .doNotStore(.requestNoStore))
        #expect(try decide(["Cache-Control": "max-age=60, No-Store"]) == .doNotStore(.responseNoStore))
        #expect(try decide(directive: .reload) == .store(scope: .principal))
        #expect(try decide(request: ["Pragma": "no-cache"]) == .store(scope: .principal))
    }

    @Test(
        "RFC 9111 §5.2.2.3: must-understand",
        arguments: [
            (200, "max-age=1, no-store, must-understand", nil), (599, "max-age=1, must-understand", .notUnderstood),
            (599, "max-age=1, no-store, must-understand", .notUnderstood), (599, "max-age=1", nil),
        ] as [(Int, String, Storability.Reason?)]
    )
    func mustUnderstand(status: Int, cacheControl: String, reason: Storability.Reason?) throws {
        let verdict = try decide(["Cache-Control": cacheControl], status: StatusCode(status))
        #expect(verdict == (reason.map { .doNotStore($0) } ?? .store(scope: .principal)))
    }

    @Test(
        "RFC 9111 §3, §3.5, §5.2.2.7: shared caches and credentials",
        arguments: [
            ("max-age=60", [:], .store(scope: .shared)),
            ("private, max-age=60", [:], .doNotStore(.privateResponse)),
            ("private=a, max-age=60", [:], .store(scope: .shared)),
            ("max-age=60", ["Authorization": "x"], .doNotStore(.authorization)),
            ("public, max-age=60", ["Authorization": "x"], .store(scope: .shared)),
            ("must-revalidate, max-age=60", ["Authorization": "x"], .store(scope: .shared)),
            ("s-maxage=60", ["Authorization": "x"], .store(scope: .shared)),
            ("must-revalidate, max-age=60", ["Authorization": "x", "Cookie": "y"], .store(scope: .principal)),
            ("max-age=60", ["Cookie": "y"], .store(scope: .principal)),
            ("public, max-age=60", ["Cookie": "y"], .store(scope: .shared)),
            ("s-maxage=60", ["Cookie": "y"], .store(scope: .shared)),
            ("s-maxage=x, max-age=60", ["Authorization": "x"], .doNotStore(.authorization)),
            ("s-maxage, max-age=60", ["Authorization": "x"], .doNotStore(.authorization)),
            ("s-maxage=60, s-maxage=-1", ["Authorization": "x"], .doNotStore(.authorization)),
            ("must-revalidate=0, max-age=60", ["Authorization": "x"], .doNotStore(.authorization)),
            ("public=no, max-age=60", ["Authorization": "x"], .doNotStore(.authorization)),
            ("s-maxage=x, max-age=60", ["Cookie": "y"], .store(scope: .principal)),
        ] as [(String, HeaderFields, Storability)]
    )
    func sharedMode(cacheControl: String, request: HeaderFields, expected: Storability) throws {
        let fields: HeaderFields = ["Cache-Control": cacheControl]
        #expect(try decide(fields, request: request, options: .shared) == expected)
        #expect(try decide(fields, request: request, options: .private) == .store(scope: .principal))
    }

    @Test("RFC 9111 §4.1: Vary", arguments: [("*", false), ("a, *", false), ("a b", false), ("a", true), ("", true)])
    func vary(value: String, isStored: Bool) throws {
        let verdict = try decide(["Cache-Control": "max-age=60", "Vary": value])
        #expect(verdict == (isStored ? .store(scope: .principal) : .doNotStore(.varyStar)))
    }

    @Test(
        "RFC 9111 §3: storing needs freshness, public or private, or a heuristically cacheable status; a validator is not enough",
        arguments: [
            (200, [:], true, true), (302, [:], false, false), (302, ["Expires": "0"], true, true),
            (302, ["Cache-Control": "max-age=0"], true, true), (302, ["ETag": "\"a\""], false, false),
            (302, ["Last-Modified": "x"], false, false), (302, ["Cache-Control": "public"], true, true),
            (302, ["Cache-Control": "private"], true, false), (302, ["Cache-Control": "s-maxage=5"], false, true),
            (302, ["Cache-Control": "no-cache"], false, false),
            (200, ["Cache-Control": "no-cache", "ETag": "\"a\""], true, true),
        ] as [(Int, HeaderFields, Bool, Bool)]
    )
    func worth(status: Int, fields: HeaderFields, asPrivate: Bool, asShared: Bool) throws {
        if case .store = try decide(fields, status: StatusCode(status)) {
            #expect(asPrivate)
        } else {
            #expect(!asPrivate)
        }
        if case .store = try decide(fields, status: StatusCode(status), options: .shared) {
            #expect(asShared)
        } else {
            #expect(!asShared)
        }
    }

    @Test func optionsAreClamped() {
        var options = CacheOptions(heuristicFraction: 7, retention: .seconds(-5), maximumVariants: -3)
        #expect(options.heuristicFraction == 1 && options.retention == .zero && options.maximumVariants == 1)
        options.heuristicFraction = -1
        options.maximumVariants = 0
        options.heuristicCap = .seconds(-1)
        #expect(options.heuristicFraction == 0 && options.maximumVariants == 1 && options.heuristicCap == .zero)
        #expect(CacheOptions().mode == .private && CacheOptions.shared.mode == .shared)
    }
}
