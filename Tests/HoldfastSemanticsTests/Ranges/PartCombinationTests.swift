// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct PartCombinationTests {
    private let storedFields: HeaderFields = [
        "Date": date(-100), "Age": "7", "ETag": "\"a\"", "Cache-Control": "max-age=1", "Content-Type": "text/plain",
        "Content-Length": "100", "X-Kept": "1", "X-New": "1",
    ]
    private let partFields: HeaderFields = [
        "Date": date(0), "ETag": "\"a\"", "Cache-Control": "max-age=90", "Content-Range": "bytes 40-99/100",
        "Content-Length": "60", "X-New": "2", "Content-Digest": "sha-256=:AA==:",
    ]

    private func combine(
        _ partFields: HeaderFields,
        with storedFields: HeaderFields,
        ranges: StoredRanges,
        asked: Range<Int64>? = nil,
        decoded: Bool = false
    ) throws -> PartCombination? {
        let head = ResponseHead(status: .partialContent, fields: partFields)
        let request = RequestHead(target: try target(), fields: ["Range": "bytes=40-"])
        let part = ReceivedPart(head, to: request, receivedAt: .noon, contentDecoded: false)
        guard let part else { return nil }
        return PartCombination(
            of: part,
            head: head,
            with: try storedForRanges(storedFields, decoded: decoded),
            ranges: ranges,
            asked: asked,
            requestTime: .noon.plus(1),
            responseTime: .noon.plus(2),
            mode: .private
        )
    }

    private func prefix(_ count: Int64, of length: Int64? = 100) throws -> StoredRanges {
        try #require(StoredRanges(intervals: [0..<count], completeLength: length))
    }

    @Test("RFC 9111 §3.4, RFC 9110 §15.3.7.3: the part's fields update the stored ones")
    func combined() throws {
        let combination = try #require(try combine(partFields, with: storedFields, ranges: try prefix(40)))
        let expected: HeaderFields = [
            "Content-Type": "text/plain", "Content-Length": "100", "X-Kept": "1", "Date": date(0), "ETag": "\"a\"",
            "Cache-Control": "max-age=90", "X-New": "2",
        ]
        #expect(combination.response.head == ResponseHead(status: .ok, fields: expected))
        #expect(combination.ranges.isComplete && combination.interval == 40..<100)
        #expect(combination.response.currentAge(now: .noon.plus(2)) == 2)
    }

    @Test("The length becomes known with the part that gives it")
    func length() throws {
        var stored = storedFields
        stored.removeAll(.contentLength)
        let combination = try #require(try combine(partFields, with: stored, ranges: try prefix(40, of: nil)))
        #expect(combination.response.head.contentLength == 100 && combination.ranges.isComplete)
        var unknown = partFields
        unknown[.contentRange] = "bytes 40-99/*"
        let open = try #require(try combine(unknown, with: stored, ranges: try prefix(40, of: nil)))
        #expect(!open.response.head.fields.contains(.contentLength) && !open.ranges.isComplete)
    }

    @Test(
        "RFC 9110 §15.3.7.3: nothing is combined without a common strong validator",
        arguments: [
            (["ETag": "\"b\""], ["ETag": "\"a\""]), (["ETag": "W/\"a\""], ["ETag": "\"a\""]),
            (["ETag": "\"a\""], ["ETag": "W/\"a\""]), (["ETag": "W/\"a\""], ["ETag": "W/\"a\""]), ([:], [:]),
            ([:], ["ETag": "\"a\""]), (["ETag": "\"a\""], [:]),
            (["ETag": "\"a\"", "Content-Encoding": "br"], ["ETag": "\"a\"", "Content-Encoding": "gzip"]),
            (["ETag": "\"a\"", "Content-Encoding": "br"], ["ETag": "\"a\""]),
            (["Last-Modified": date(-5), "Date": date(-5)], ["Last-Modified": date(-5), "Date": date(0)]),
            (["Last-Modified": date(-5), "Date": date(0)], ["Last-Modified": date(-6), "Date": date(0)]),
        ] as [(HeaderFields, HeaderFields)]
    )
    func different(part: HeaderFields, stored: HeaderFields) throws {
        var part = part
        part.append(.contentRange, "bytes 40-99/100")
        #expect(try combine(part, with: stored, ranges: try prefix(40)) == nil)
    }

    @Test("RFC 9110 §8.8.2.2: a common strong date is enough")
    func strongDate() throws {
        let part: HeaderFields = [
            "Content-Range": "bytes 40-99/100", "Last-Modified": date(-5), "Date": date(0), "Content-Length": "60",
        ]
        let stored: HeaderFields = ["Last-Modified": date(-5), "Date": date(-1)]
        #expect(try combine(part, with: stored, ranges: try prefix(40)) != nil)
        #expect(try combine(part, with: stored, ranges: try prefix(40), decoded: true) == nil)
        // A date names the resource in all its codings, so both must say which one.
        let coded: HeaderFields = ["Content-Encoding": "gzip"]
        #expect(try combine(part, with: stored.merging(coded), ranges: try prefix(40)) == nil)
        #expect(try combine(part.merging(coded), with: stored, ranges: try prefix(40)) == nil)
        let combination = try #require(
            try combine(part.merging(coded), with: stored.merging(coded), ranges: try prefix(40))
        )
        #expect(combination.response.head.fields[.contentEncoding] == "gzip")
    }

    @Test(
        "RFC 9110 §14.4: a part must be what was requested",
        arguments: [
            (nil, true), (40..<100, true), (40..<Int64.max, true), (40..<120, true), (41..<100, false),
            (39..<100, false), (40..<99, false),
        ] as [(Range<Int64>?, Bool)]
    )
    func asked(interval: Range<Int64>?, fits: Bool) throws {
        let combination = try combine(partFields, with: storedFields, ranges: try prefix(40), asked: interval)
        #expect((combination != nil) == fits)
    }

    @Test("RFC 9110 §14.4: lengths that contradict each other are not combined")
    func contradiction() throws {
        #expect(try combine(partFields, with: storedFields, ranges: try prefix(40, of: 101)) == nil)
        var short = partFields
        short[.contentLength] = "59"
        #expect(try combine(short, with: storedFields, ranges: try prefix(40)) == nil)
    }
}
