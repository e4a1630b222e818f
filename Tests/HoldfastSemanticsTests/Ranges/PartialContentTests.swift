// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// A stored 200 that came at noon, for the tests of ranges.
func storedForRanges(
    _ fields: HeaderFields,
    status: StatusCode = .ok,
    method: RequestMethod = .get,
    decoded: Bool = false
) throws -> StoredResponse {
    StoredResponse(
        target: try target(),
        method: method,
        head: ResponseHead(status: status, fields: fields),
        requestTime: .noon,
        responseTime: .noon,
        contentDecoded: decoded
    )
}

@Suite struct PartialContentTests {
    private func answer(
        _ request: HeaderFields,
        _ stored: StoredResponse,
        method: RequestMethod = .get,
        length: Int64 = 1000
    ) throws -> RangeAnswer {
        PartialContent.answer(
            request: RequestHead(method: method, target: try target(), fields: request),
            stored: stored,
            completeLength: length
        )
    }

    @Test("RFC 9110 §14.2: Range applies only to a GET answered by a 200")
    func applies() throws {
        let range: HeaderFields = ["Range": "bytes=0-1"]
        #expect(try answer(range, try storedForRanges([:])) == .part(0..<2))
        #expect(try answer(["Range": "bytes=1000-"], try storedForRanges([:])) == .unsatisfiable)
        #expect(try answer(range, try storedForRanges([:]), method: .head) == .whole)
        #expect(try answer(range, try storedForRanges([:], method: .head)) == .whole)
        #expect(try answer(range, try storedForRanges([:], status: .notFound)) == .whole)
        #expect(try answer(["Range": "lines=0-1"], try storedForRanges([:])) == .whole)
        #expect(try answer([:], try storedForRanges([:])) == .whole)
    }

    @Test("Content that was decoded is returned whole")
    func decoded() throws {
        let stored = try storedForRanges(["ETag": "\"a\""], decoded: true)
        #expect(try answer(["Range": "bytes=0-1"], stored) == .whole)
        #expect(try answer(["Range": "bytes=0-1", "If-Range": "\"a\""], stored) == .whole)
    }

    @Test(
        "RFC 9110 §13.1.5, §8.8.2.2: If-Range compares strongly",
        arguments: [
            ("\"a\"", ["ETag": "\"a\""], true), ("W/\"a\"", ["ETag": "W/\"a\""], false),
            ("W/\"a\"", ["ETag": "\"a\""], false), ("\"a\"", ["ETag": "W/\"a\""], false),
            ("\"b\"", ["ETag": "\"a\""], false), ("\"a\"", [:], false),
            (date(-1), ["Last-Modified": date(-1), "Date": date(0)], true),
            (date(0), ["Last-Modified": date(0), "Date": date(0)], false),
            (date(-1), ["Last-Modified": date(-1)], false),
            (date(-1), ["Last-Modified": date(-2), "Date": date(0)], false),
            (date(-2), ["Last-Modified": date(-1), "Date": date(0)], false),
            (date(-1), ["ETag": "\"a\""], false), ("yesterday", ["ETag": "\"a\""], false), ("", [:], false),
        ] as [(String, HeaderFields, Bool)]
    )
    func ifRange(value: String, fields: HeaderFields, holds: Bool) throws {
        let stored = try storedForRanges(fields)
        let expected: RangeAnswer = holds ? .part(0..<2) : .whole
        #expect(try answer(["Range": "bytes=0-1", "If-Range": value], stored) == expected)
        // A range beyond the end is no error where the condition fails (RFC 9110 §14.2).
        let beyond = try answer(["Range": "bytes=1000-", "If-Range": value], stored)
        #expect(beyond == (holds ? .unsatisfiable : .whole))
        #expect(try answer(["Range": "bytes=0-1", "If-Range": value, "if-range": value], stored) == .whole)
    }

    private let fields: HeaderFields = [
        "Date": date(-10), "Cache-Control": "max-age=90", "ETag": "\"a\"", "Expires": date(9), "Vary": "Accept",
        "Content-Location": "/c", "Content-Type": "text/plain", "Content-Length": "1000", "X-Other": "1",
        "Content-Digest": "sha-256=:AA==:", "Repr-Digest": "sha-256=:AA==:",
    ]

    @Test("RFC 9110 §15.3.7.1: the head of a 206 with one part")
    func singleHead() throws {
        let range = try #require(ContentRange(10..<30, completeLength: 1000))
        let head = PartialContent.head(of: try storedForRanges(fields), range: range, now: .noon.plus(5))
        #expect(head.status == .partialContent)
        #expect(head.fields[.contentRange] == "bytes 10-29/1000" && head.fields[.contentLength] == "20")
        #expect(head.fields[.age] == "15")
        for name in [FieldName.date, .cacheControl, .eTag, .expires, .vary, .contentLocation, .contentType, "X-Other"] {
            #expect(head.fields[name] == fields[name])
        }
        #expect(head.fields.contains("Repr-Digest") && !head.fields.contains("Content-Digest"))
    }

    @Test("RFC 9110 §15.3.7.2: the head of a 206 with several parts names no range")
    func multipartHead() throws {
        let body = MultipartByteRanges(
            intervals: [0..<2, 500..<502],
            completeLength: 1000,
            contentType: "text/plain",
            seed: 7
        )
        let head = PartialContent.head(of: try storedForRanges(fields), body: body, now: .noon)
        #expect(head.status == .partialContent && !head.fields.contains(.contentRange))
        #expect(head.fields.values(of: .contentType) == ["multipart/byteranges; boundary=holdfast-0000000000000007"])
        #expect(head.fields[.contentLength] == String(body.contentLength))
        #expect(head.fields[.eTag] == "\"a\"")
    }

    @Test("RFC 9110 §15.5.17: the head of a 416 gives the length")
    func unsatisfiableHead() {
        let head = PartialContent.unsatisfiableHead(completeLength: 1000, now: .noon)
        #expect(head.status == .rangeNotSatisfiable && head.contentLength == 0)
        #expect(head.fields[.contentRange] == "bytes */1000" && head.fields[.date] == date(0))
    }

    @Test("Random Range and If-Range values never trap", arguments: propertySeeds)
    func arbitrary(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        let stored = try storedForRanges(["ETag": "\"a\"", "Last-Modified": date(-9), "Date": date(0)])
        for _ in 0..<1000 {
            let range = "bytes=" + source.text(from: ["0", "5", "-", ",", "99999999999999999999"], upTo: 6)
            let condition = source.text(from: ["\"", "a", "\"a\"", "W/", date(-9), ","], upTo: 3)
            let length = Int64.random(in: 0...50, using: &source)
            let answer = try answer(["Range": range, "If-Range": condition], stored, length: length)
            if case .part(let interval) = answer { #expect(interval.upperBound <= length) }
            if answer != .whole { #expect(condition == "\"a\"" || condition == date(-9), "\(condition)") }
        }
    }
}
