// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct FieldUpdateTests {
    private let full: HeaderFields = [
        "Connection": "close, X-Hop", "X-Hop": "1", "Keep-Alive": "2", "Proxy-Connection": "3", "TE": "4",
        "Trailer": "5", "Transfer-Encoding": "chunked", "Upgrade": "6", "Proxy-Authenticate": "7",
        "Proxy-Authentication-Info": "8", "Proxy-Authorization": "9", "Content-Encoding": "gzip",
        "Content-Length": "10", "ETag": "\"a\"", "Set-Cookie": "b", "set-cookie": "c",
        "Cache-Control": "no-cache=\"set-cookie\", private=\"x-user\"", "X-User": "d",
    ]

    @Test("RFC 9111 §3.1: fields that are never stored")
    func storable() {
        func names(decoded: Bool, mode: CacheOptions.Mode) -> [String] {
            FieldUpdate.storable(ResponseHead(status: .ok, fields: full), contentDecoded: decoded, mode: mode)
                .fields.map(\.name.canonicalName)
        }
        let coding = ["content-encoding", "content-length"]
        #expect(names(decoded: false, mode: .private) == coding + ["etag", "cache-control", "x-user"])
        #expect(names(decoded: true, mode: .private) == ["etag", "cache-control", "x-user"])
        #expect(names(decoded: false, mode: .shared) == coding + ["etag", "cache-control"])
    }

    private func stored(_ fields: HeaderFields) throws -> StoredResponse {
        StoredResponse(
            target: try target(),
            head: ResponseHead(status: .notFound, fields: fields),
            requestTime: .noon,
            responseTime: .noon
        )
    }

    @Test(
        "RFC 9110 §7.6.1: Connection cannot remove the fields that a cache depends on",
        arguments: ["Cache-Control", "vary, CDN-Cache-Control"]
    )
    func connectionAgainstDirectives(_ nominated: String) {
        let fields: HeaderFields = [
            "Connection": "x-hop, \(nominated)", "X-Hop": "1", "Cache-Control": "no-cache", "Vary": "A",
            "CDN-Cache-Control": "max-age=1",
        ]
        let kept = FieldUpdate.storable(
            ResponseHead(status: .ok, fields: fields),
            contentDecoded: false,
            mode: .shared,
            targetedFields: [.cdnCacheControl]
        )
        #expect(kept.fields.map(\.name) == [.cacheControl, .vary, .cdnCacheControl])
    }

    @Test(
        "RFC 9111 §5.2.2.4, §5.2.2.7: no qualified directive removes the fields that a cache depends on",
        arguments: [
            ["Cache-Control": "max-age=1, must-revalidate, no-cache=\"Cache-Control\""],
            ["Age": "3600", "Cache-Control": "max-age=60, no-cache=\"Age\""],
            ["Vary": "Accept", "Cache-Control": "max-age=0, no-cache=\"x-hop, Vary\""],
            ["Date": date(0), "Cache-Control": "private=\"date\""],
            ["CDN-Cache-Control": "max-age=1, no-cache=\"CDN-Cache-Control\""],
        ] as [HeaderFields]
    )
    func qualifiedAgainstDirectives(_ fields: HeaderFields) {
        let kept = FieldUpdate.storable(
            ResponseHead(status: .ok, fields: fields),
            contentDecoded: false,
            mode: .shared,
            targetedFields: [.cdnCacheControl]
        )
        #expect(kept.fields == fields)
    }

    @Test(
        "RFC 9110 §8.8.2.2: no update makes a weak Last-Modified strong, and a new one is not of the stored bytes",
        arguments: [(0, 0, false), (-1, -1, true), (-1, -2, false), (nil, -1, false)] as [(Int64?, Int64, Bool)]
    )
    func strengthOfDate(_ known: Int64?, _ told: Int64, _ isStrong: Bool) throws {
        var fields: HeaderFields = ["Date": date(0)]
        fields[.lastModified] = known.map { date($0) }
        var response = try stored(fields)
        for seconds in [50, 100] as [Int64] {
            response = response.freshened(
                by: ResponseHead(status: .notModified, fields: ["Last-Modified": date(told), "Date": date(seconds)]),
                requestTime: .noon.plus(seconds),
                responseTime: .noon.plus(seconds),
                mode: .private
            )
            #expect(response.lastModified?.description == date(told))
            #expect((StrongValidator(response) != nil) == isStrong)
            #expect(StrongValidator.ifRangeHolds(["If-Range": date(told)], for: response) == isStrong)
        }
    }

    @Test(
        "RFC 9110 §8.8.1: a 304 never makes a weak tag strong, because it says nothing about the stored bytes",
        arguments: [
            ("W/\"a\"", "\"a\"", "W/\"a\""), ("\"a\"", "W/\"a\"", "W/\"a\""), ("\"a\"", "\"a\"", "\"a\""),
            ("W/\"a\"", "W/\"a\"", "W/\"a\""),
        ]
    )
    func strength(_ known: String, _ told: String, _ expected: String) throws {
        let freshened = try stored(["ETag": known, "Date": date(0)]).freshened(
            by: ResponseHead(status: .notModified, fields: ["ETag": told, "X-New": "1"]),
            requestTime: .noon,
            responseTime: .noon,
            mode: .private
        )
        #expect(freshened.head.fields.values(of: .eTag) == [expected])
        #expect(freshened.head.fields.contains("X-New"))
        #expect((StrongValidator(freshened) != nil) == !expected.hasPrefix("W/"))
    }

    @Test(
        "RFC 9111 §5.2.2.4, §5.2.2.7: fields that a 304 newly qualifies are no longer stored",
        arguments: [
            ("no-cache=\"x-user\"", CacheOptions.Mode.private, false), ("no-cache=\"x-user\"", .shared, false),
            ("private=\"x-user\"", .shared, false), ("private=\"x-user\"", .private, true),
            ("max-age=9", .shared, true),
        ]
    )
    func lateQualification(_ cacheControl: String, _ mode: CacheOptions.Mode, isKept: Bool) throws {
        let freshened = try stored(["ETag": "\"a\"", "X-User": "1", "Cache-Control": "max-age=1"]).freshened(
            by: ResponseHead(status: .notModified, fields: ["ETag": "\"a\"", "Cache-Control": cacheControl]),
            requestTime: .noon,
            responseTime: .noon,
            mode: mode
        )
        #expect(freshened.head.fields.contains("X-User") == isKept)
        #expect(freshened.head.fields[.cacheControl] == cacheControl)
    }

    @Test("RFC 9111 §3.2: a 304 updates fields, but not those of the stored bytes")
    func freshening() throws {
        let old = try stored([
            "Date": date(0), "Age": "50", "Cache-Control": "max-age=1", "ETag": "\"a\"", "X-Old": "1", "X-New": "1",
            "x-new": "2", "Content-Type": "text/html", "Content-Length": "5", "Content-Encoding": "gzip",
        ])
        let new = old.freshened(
            by: ResponseHead(
                status: .notModified,
                fields: [
                    "Date": date(90), "Cache-Control": "max-age=9", "ETag": "W/\"a\"", "X-New": "3",
                    "Content-Type": "a/b",
                    "Content-Length": "0", "Content-Encoding": "br", "Content-Range": "x", "Connection": "close",
                    "Content-Location": "/c",
                ]
            ),
            requestTime: .noon.plus(90),
            responseTime: .noon.plus(91),
            mode: .private
        )
        let expected: HeaderFields = [
            "X-Old": "1", "Content-Type": "text/html", "Content-Length": "5", "Content-Encoding": "gzip",
            "Date": date(90), "Cache-Control": "max-age=9", "ETag": "W/\"a\"", "X-New": "3", "Content-Location": "/c",
        ]
        #expect(new.head.fields == expected)
        #expect(new.head.status == .notFound)
        #expect(new.requestTime == .noon.plus(90) && new.responseTime == .noon.plus(91))
        #expect(new.cacheControl.maxAge == 9)
        #expect(new.currentAge(now: .noon.plus(91)) == 1)
    }

    @Test(
        "RFC 9110 §6.6.1: a 304 without Date gets the time of its receipt",
        arguments: [[:], ["Date": "x"]] as [HeaderFields]
    )
    func missingDate(fields: HeaderFields) throws {
        let old = try stored(["Date": date(0), "Age": "50", "Cache-Control": "max-age=9"])
        let head = ResponseHead(status: .notModified, fields: fields)
        let new = old.freshened(by: head, requestTime: .noon.plus(90), responseTime: .noon.plus(90), mode: .private)
        #expect(new.head.fields[.date] == date(90))
        #expect(new.isFresh(now: .noon.plus(91), options: .private))
    }

    @Test("The Age of a 304 counts")
    func ageOfUpdate() throws {
        let head = ResponseHead(status: .notModified, fields: ["Age": "7"])
        let new = try stored([:]).freshened(by: head, requestTime: .noon, responseTime: .noon, mode: .private)
        #expect(new.currentAge(now: .noon) == 7)
    }
}
