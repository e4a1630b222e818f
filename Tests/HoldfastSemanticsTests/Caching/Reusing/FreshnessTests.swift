// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct FreshnessTests {
    private func stored(
        _ fields: HeaderFields,
        status: StatusCode = .ok,
        delay: Int64 = 0,
        decoded: Bool = false
    ) throws -> StoredResponse {
        StoredResponse(
            target: try target(),
            head: ResponseHead(status: status, fields: fields),
            requestTime: .noon.plus(-delay),
            responseTime: .noon,
            contentDecoded: decoded
        )
    }

    @Test(
        "RFC 9111 §4.2.1: which rule gives the lifetime",
        arguments: [
            (
                ["Cache-Control": "max-age=60, s-maxage=10", "Expires": date(5)], 60, 10,
                FreshnessLifetime.Source.maxAge
            ),
            (["Cache-Control": "max-age=60", "Expires": date(-5)], 60, 60, .maxAge),
            (["Cache-Control": "max-age=60, max-age=x", "Expires": date(50)], 0, 0, .maxAge),
            (["Cache-Control": "public", "Expires": date(50), "Date": date(-10)], 60, 60, .expires),
            (["Expires": date(50)], 50, 50, .expires),
            (["Expires": date(-50), "Date": date(0)], 0, 0, .expires),
            (["Expires": "0", "Last-Modified": date(-1000)], 0, 0, .expires),
            (["Expires": "Fri, 18 Sep 2026 12:00:00 GMT"], 86_400, 86_400, .expires),
            (["Expires": "Fri, 18 Sep 2026 12:00:00 UTC"], 0, 0, .expires),
            (["Expires": "Fri, 18 Sep 2026 12:00:00 utc"], 0, 0, .expires),
            (["Expires": date(50), "expires": date(50)], 0, 0, .expires),
            (["Last-Modified": date(-1000), "Date": date(0)], 100, 100, .heuristic),
            (["Last-Modified": date(-100_000_000)], 604_800, 604_800, .heuristic),
            (["Last-Modified": date(1000)], 0, 0, .heuristic),
            (["Last-Modified": "x"], 0, 0, .none),
            ([:], 0, 0, .none),
        ] as [(HeaderFields, Int64, Int64, FreshnessLifetime.Source)]
    )
    func lifetimes(
        fields: HeaderFields,
        asPrivate: Int64,
        asShared: Int64,
        source: FreshnessLifetime.Source
    ) throws {
        let response = try stored(fields)
        #expect(response.freshnessLifetime(.private) == FreshnessLifetime(seconds: asPrivate, source: source))
        let hasShared = CacheControl(fields).sMaxAge != nil
        let shared = FreshnessLifetime(seconds: asShared, source: hasShared ? .sMaxAge : source)
        #expect(response.freshnessLifetime(.shared) == shared)
    }

    @Test(
        "RFC 9111 §4.2.2: a guess needs a cacheable status or public",
        arguments: [
            (200, "", true), (404, "", true), (501, "", true), (302, "", false), (403, "", false), (599, "", false),
            (599, "public", true),
        ]
    )
    func heuristics(status: Int, cacheControl: String, isFresh: Bool) throws {
        let fields: HeaderFields = ["Last-Modified": date(-86_400), "Cache-Control": cacheControl]
        let response = try stored(fields, status: StatusCode(status))
        #expect(response.isFresh(now: .noon.plus(10), options: .private) == isFresh)
        #expect(!response.isFresh(now: .noon.plus(10), options: CacheOptions(heuristicFreshness: false)))
        #expect(!response.isFresh(now: .noon.plus(10), options: CacheOptions(heuristicFraction: .nan)))
        #expect(!response.isFresh(now: .noon.plus(10), options: CacheOptions(heuristicCap: .seconds(-1))))
    }

    @Test(
        "RFC 9111 §4.2.3: ages",
        arguments: [
            (["Date": date(0)], 0, 0, 0), (["Date": date(-30)], 0, 30, 30), (["Date": date(30)], 0, 0, 0),
            (["Date": date(0), "Age": "20"], 4, 0, 24), (["Date": date(-30), "Age": "20"], 4, 30, 30),
            (["Age": "20"], 0, 0, 20), (["Age": "-20"], 3, 0, 3), (["Age": "99999999999"], 0, 0, 2_147_483_648),
            (["Date": "yesterday"], 2, 0, 2),
        ] as [(HeaderFields, Int64, Int64, Int64)]
    )
    func ages(fields: HeaderFields, delay: Int64, apparent: Int64, corrected: Int64) throws {
        let response = try stored(fields, delay: delay)
        #expect(response.apparentAge == apparent)
        #expect(response.correctedInitialAge == corrected)
        #expect(response.currentAge(now: .noon.plus(100)) == corrected + 100)
        #expect(response.currentAge(now: .noon.plus(-100)) == corrected)
        #expect(response.currentAge(now: .distantFuture) > 0)
        #expect(response.currentAge(now: .distantPast) == corrected)
    }

    @Test("RFC 9111 §4.2: fresh means the lifetime exceeds the age, to the millisecond")
    func boundary() throws {
        let response = try stored(["Cache-Control": "max-age=60", "Date": date(0)])
        #expect(response.isFresh(now: .noon + .milliseconds(59_999), options: .private))
        #expect(!response.isFresh(now: .noon + .seconds(60), options: .private))
    }

    @Test("A response from the cache has one Age with the current age (RFC 9111 §5.1)")
    func answers() throws {
        let response = try stored(["Age": "5", "age": "7", "A": "b", "Date": date(0)])
        let head = response.responseHead(now: .noon.plus(10))
        #expect(head.fields.values(of: .age) == ["15"])
        #expect(head.fields.count == 3)
    }

    @Test("RFC 9110 §6.6.1: a response without Date gets the time of its receipt, one with Date keeps it")
    func dates() throws {
        let dateless = try stored(["A": "b"])
        #expect(dateless.responseHead(now: .noon.plus(10)).fields[.date] == date(0))
        #expect(Precondition.notModifiedHead(for: dateless, now: .noon.plus(10)).fields[.date] == date(0))
        let dated = try stored(["Date": date(-5)])
        #expect(dated.responseHead(now: .noon.plus(10)).fields.values(of: .date) == [date(-5)])
    }

    @Test func uselessness() throws {
        let options = CacheOptions(retention: .seconds(1000))
        #expect(try stored(["Cache-Control": "max-age=60", "ETag": "\"a\""]).uselessAfter(options) == .noon.plus(1060))
        #expect(try stored(["Cache-Control": "max-age=60", "Age": "20"]).uselessAfter(options) == .noon.plus(1040))
        let strict: HeaderFields = ["Cache-Control": "max-age=60, must-revalidate"]
        #expect(try stored(strict).uselessAfter(options) == .noon.plus(60))
        #expect(try stored(strict.merging(["ETag": "\"a\""])).uselessAfter(options) == .noon.plus(1060))
        #expect(try stored(["Cache-Control": "no-cache"]).uselessAfter(options) == .noon)
    }

    @Test(
        "RFC 9111 §4.2.4: directives that forbid stale responses",
        arguments: [
            ("must-revalidate", true, true), ("no-cache", true, true), ("proxy-revalidate", false, true),
            ("s-maxage=1", false, true), ("max-age=1", false, false), ("no-cache=a", false, false),
        ]
    )
    func staleness(cacheControl: String, asPrivate: Bool, asShared: Bool) throws {
        let response = try stored(["Cache-Control": cacheControl])
        #expect(response.forbidsStale(.private) == asPrivate)
        #expect(response.forbidsStale(.shared) == asShared)
    }

    @Test("Decoded content makes a strong tag weak; repeated validators are ignored")
    func validators() throws {
        #expect(try stored(["ETag": "\"a\""]).entityTag?.description == "\"a\"")
        #expect(try stored(["ETag": "\"a\""], decoded: true).entityTag?.description == "W/\"a\"")
        #expect(try stored(["ETag": "\"a\"", "etag": "\"b\""]).hasValidator == false)
        #expect(try stored(["Last-Modified": date(-5)]).hasValidator)
        #expect(try stored(["Last-Modified": "x", "ETag": "x"]).hasValidator == false)
    }

    @Test(arguments: propertySeeds)
    func agesNeverTrapAndNeverShrink(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let response = StoredResponse(
                target: try target(),
                head: ResponseHead(
                    status: .ok,
                    fields: [
                        "Date": HTTPDate(Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next())))
                            .description,
                        "Expires": HTTPDate(Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next())))
                            .description,
                        "Age": String(source.next()),
                    ]
                ),
                requestTime: Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next())),
                responseTime: Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next()))
            )
            let now = Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next()))
            #expect(response.currentAge(now: now) >= response.correctedInitialAge)
            #expect(response.currentAge(now: now + .seconds(9)) >= response.currentAge(now: now))
            #expect(response.freshnessLifetime(.private).seconds >= 0)
            _ = response.uselessAfter(.private)
        }
    }
}
