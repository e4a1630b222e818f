// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct ReceivedPartTests {
    private let fields: HeaderFields = [
        "Date": date(0), "ETag": "\"a\"", "Cache-Control": "max-age=90", "Content-Range": "bytes 4-9/10",
        "Content-Length": "6", "Content-Type": "text/plain", "Content-Digest": "sha-256=:AA==:",
    ]

    private func part(
        _ fields: HeaderFields,
        status: StatusCode = .partialContent,
        method: RequestMethod = .get,
        request: HeaderFields = ["Range": "bytes=4-"],
        decoded: Bool = false
    ) throws -> ReceivedPart? {
        ReceivedPart(
            ResponseHead(status: status, fields: fields),
            to: RequestHead(method: method, target: try target(), fields: request),
            receivedAt: .noon,
            contentDecoded: decoded
        )
    }

    @Test("RFC 9111 §3.3: a 206 is stored as an incomplete 200")
    func storable() throws {
        let part = try #require(try part(fields))
        #expect(part.interval == 4..<10 && part.completeLength == 10)
        #expect(part.validator == EntityTag("\"a\"").map { .entityTag($0) })
        #expect(part.storedHead.status == .ok)
        let expected: HeaderFields = [
            "Date": date(0), "ETag": "\"a\"", "Cache-Control": "max-age=90", "Content-Type": "text/plain",
            "Content-Length": "10",
        ]
        #expect(part.storedHead.fields == expected)
        #expect(part.ranges == StoredRanges(intervals: [4..<10], completeLength: 10))
    }

    @Test("RFC 9111 §3.3: a 206 that is not stored")
    func notStorable() throws {
        #expect(try part(fields, status: .ok) == nil)
        #expect(try part(fields, method: .head) == nil)
        #expect(try part(fields, request: [:]) == nil)
        #expect(try part(fields, decoded: true) == nil)
        for value in ["bytes 4-9/9", "bytes */10", "lines 4-9/10", "x"] {
            var wrong = fields
            wrong[.contentRange] = value
            #expect(try part(wrong) == nil)
        }
        var several = fields
        several[.contentType] = "multipart/byteranges; boundary=x"
        #expect(try part(several) == nil)
    }

    @Test(
        "RFC 9110 §15.3.7.3: only a strong validator lets a part be combined",
        arguments: [
            (["ETag": "\"a\""], true), (["ETag": "W/\"a\""], false), ([:], false),
            (["Last-Modified": date(-1), "Date": date(0)], true),
            (["Last-Modified": date(0), "Date": date(0)], false),
            (["ETag": "W/\"a\"", "Last-Modified": date(-1), "Date": date(0)], false),
            (["ETag": "\"a\"", "Content-Length": "5"], false),
        ] as [(HeaderFields, Bool)]
    )
    func validators(fields: HeaderFields, isStrong: Bool) throws {
        var fields = fields
        fields.append(.contentRange, "bytes 4-9/10")
        let part = try #require(try part(fields))
        #expect((part.validator != nil) == isStrong)
    }

    @Test("A truncated part is stored as a shorter part")
    func brokenOff() throws {
        let part = try #require(try part(fields))
        let ended = try #require(part.ended(after: 2, isWhole: false))
        #expect(ended.interval == 4..<6 && ended.completeLength == 10 && ended.validator == part.validator)
        #expect(ended.storedHead == part.storedHead)
        #expect(part.ended(after: 6, isWhole: true) == part)
        #expect(part.ended(after: 7, isWhole: true) == nil)
        #expect(part.ended(after: 0, isWhole: true) == nil)
        #expect(part.ended(after: -1, isWhole: false) == nil)
    }

    @Test("RFC 9110 §14.4: a complete part shorter than its Content-Range is stored alone and ends the whole")
    func miscounted() throws {
        let ended = try #require(try part(fields)?.ended(after: 5, isWhole: true))
        #expect(ended.interval == 4..<9 && ended.completeLength == 9 && ended.validator == nil)
        #expect(!ended.storedHead.fields.contains(.eTag) && ended.storedHead.contentLength == 9)
        let stored = try storedForRanges(ended.storedHead.fields)
        for (range, interval) in [("-5", 4..<9), ("6-8", 6..<9), ("6-", 6..<9)] as [(String, Range<Int64>)] {
            let request = RequestHead(target: try target(), fields: ["Range": "bytes=\(range)"])
            let decision = PartialReuse.decide(request: request, stored: stored, ranges: ended.ranges)
            #expect(decision == .answer(.part(interval)))
        }
        var middle = fields
        middle[.contentRange] = "bytes 4-9/20"
        let short = try #require(try part(middle)?.ended(after: 5, isWhole: true))
        #expect(short.interval == 4..<9 && short.completeLength == 20 && short.validator == nil)
    }

    @Test(
        "RFC 9111 §3.3: a truncated 200 is kept if the rest can be requested",
        arguments: [
            (["ETag": "\"a\"", "Content-Length": "10"], 4, 10), (["ETag": "\"a\""], 4, nil),
            (["Last-Modified": date(-5), "Date": date(0), "Content-Length": "10"], 4, 10),
        ] as [(HeaderFields, Int64, Int64?)]
    )
    func incomplete(fields: HeaderFields, count: Int64, length: Int64?) throws {
        let part = try #require(try incompletePart(fields, count: count))
        #expect(part.interval == 0..<count && part.completeLength == length)
        #expect(part.storedHead == ResponseHead(status: .ok, fields: fields))
    }

    @Test(
        "RFC 9111 §3.3: truncated 200 responses that are not kept",
        arguments: [
            (["Content-Length": "10"], 4), (["ETag": "W/\"a\"", "Content-Length": "10"], 4),
            (["ETag": "\"a\"", "Content-Length": "10"], 10), (["ETag": "\"a\"", "Content-Length": "10"], 0),
            (["ETag": "\"a\"", "Content-Length": "x"], 4), (["ETag": "\"a\""], .max), (["ETag": "\"a\""], -1),
        ] as [(HeaderFields, Int64)]
    )
    func incompleteNotKept(fields: HeaderFields, count: Int64) throws {
        #expect(try incompletePart(fields, count: count) == nil)
    }

    @Test("Content that was decoded, and other statuses and methods, are not kept")
    func incompleteOthers() throws {
        #expect(try incompletePart(["ETag": "\"a\""], count: 4, decoded: true) == nil)
        #expect(try incompletePart(["ETag": "\"a\""], count: 4, status: .notFound) == nil)
        #expect(try incompletePart(["ETag": "\"a\""], count: 4, method: .post) == nil)
    }

    private func incompletePart(
        _ fields: HeaderFields,
        count: Int64,
        decoded: Bool = false,
        status: StatusCode = .ok,
        method: RequestMethod = .get
    ) throws -> ReceivedPart? {
        ReceivedPart(
            incomplete: ResponseHead(status: status, fields: fields),
            to: RequestHead(method: method, target: try target()),
            receivedAt: .noon,
            contentDecoded: decoded,
            count: count
        )
    }
}
