// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct RangeRequestTests {
    @Test(
        "RFC 9110 §14.1.2, §14.2: what a Range field requests",
        arguments: [
            ("bytes=0-499", [.bounded(first: 0, last: 499)]), ("BYTES=500-", [.from(first: 500)]),
            ("bytes=-500", [.suffix(length: 500)]), ("bytes=-0", [.suffix(length: 0)]),
            ("bytes=0-0,-1", [.bounded(first: 0, last: 0), .suffix(length: 1)]),
            ("bytes= 1-2 ,, \t3- ,", [.bounded(first: 1, last: 2), .from(first: 3)]),
            ("bytes=5-99999999999999999999", [.bounded(first: 5, last: ByteRange.limit)]),
            ("bytes=99999999999999999999-", [.from(first: ByteRange.limit)]),
            ("bytes=-99999999999999999999", [.suffix(length: ByteRange.limit)]),
        ] as [(String, [ByteRange])]
    )
    func parsing(value: String, expected: [ByteRange]) {
        #expect(RangeRequest(parsing: value)?.ranges == expected)
        #expect(RangeRequest(["range": value])?.ranges == expected)
    }

    @Test(
        "RFC 9110 §14.2: a Range that is ignored",
        arguments: [
            "", "bytes", "bytes=", "bytes=,", "items=0-1", "bytes 0-1", "bytes =0-1", "bytes=2-1", "bytes=a-b",
            "bytes=1", "bytes=-", "bytes=--1", "bytes=+1-2", "bytes=0-1-2", "bytes=0 -1", "bytes=0-1;2-3",
            "bytes=0-1,x",
            "bytes=\"0-1\"", "=0-1", "bytes=1-0x2", "bytes=٠-٩",
        ]
    )
    func ignored(value: String) {
        #expect(RangeRequest(parsing: value) == nil)
    }

    @Test("RFC 9110 §14.2: a repeated Range, or one with too many ranges, is ignored")
    func bounds() {
        #expect(RangeRequest(["Range": "bytes=0-1", "range": "bytes=0-1"]) == nil)
        #expect(RangeRequest([:]) == nil)
        func field(_ count: Int) -> String { "bytes=" + Array(repeating: "0-", count: count).joined(separator: ",") }
        #expect(RangeRequest(parsing: field(RangeRequest.maximumRanges)) != nil)
        #expect(RangeRequest(parsing: field(RangeRequest.maximumRanges + 1)) == nil)
    }

    @Test(
        "RFC 9110 §14.1.2: ranges of content of a known length",
        arguments: [
            ("0-499", 10_000, 0..<500), ("9500-", 10_000, 9500..<10_000), ("-500", 10_000, 9500..<10_000),
            ("-20000", 10_000, 0..<10_000), ("9999-20000", 10_000, 9999..<10_000), ("10000-", 10_000, nil),
            ("10000-10001", 10_000, nil), ("-0", 10_000, nil), ("0-0", 0, nil), ("-1", 0, nil), ("0-", -1, nil),
            ("0-99999999999999999999", .max, 0..<Int64.max), ("-99999999999999999999", 3, 0..<3),
        ] as [(String, Int64, Range<Int64>?)]
    )
    func resolving(text: String, length: Int64, expected: Range<Int64>?) throws {
        #expect(try #require(ByteRange(text)).resolved(completeLength: length) == expected)
    }

    @Test("A range made in code never traps, whatever its numbers")
    func madeInCode() {
        #expect(ByteRange.bounded(first: -5, last: .max).resolved(completeLength: 9) == nil)
        #expect(ByteRange.bounded(first: 7, last: 3).resolved(completeLength: 9) == nil)
        #expect(ByteRange.bounded(first: 7, last: 3).bounds == nil)
        #expect(ByteRange.bounded(first: 0, last: .max).bounds == nil)
        #expect(ByteRange.from(first: .min).resolved(completeLength: .max) == nil)
        #expect(ByteRange.suffix(length: .min).resolved(completeLength: .max) == nil)
    }

    @Test(
        "RFC 9110 §14.2, §15.3.7.2: parts come in the requested order, and close ones are joined",
        arguments: [
            ("0-9", 1000, .part(0..<10)), ("0-", 1000, .part(0..<1000)),
            ("500-509,0-9", 1000, .parts([500..<510, 0..<10])),
            ("0-9,10-19", 1000, .part(0..<20)), ("0-9,5-19", 1000, .part(0..<20)), ("5-19,0-9", 1000, .part(0..<20)),
            ("0-9,89-99", 1000, .part(0..<100)), ("0-9,90-99", 1000, .parts([0..<10, 90..<100])),
            ("900-909,0-9,905-950,20-29", 1000, .parts([900..<951, 0..<30])),
            ("900-909,0-9,895-899", 1000, .parts([895..<910, 0..<10])),
            ("0-,0-,0-,0-", 1000, .part(0..<1000)), ("0-9,2000-", 1000, .part(0..<10)),
            ("1000-", 1000, .unsatisfiable), ("-0", 1000, .unsatisfiable), ("1000-,5000-6000", 1000, .unsatisfiable),
            ("0-", 0, .unsatisfiable), ("-5", 0, .whole),
        ] as [(String, Int64, RangeAnswer)]
    )
    func answers(text: String, length: Int64, expected: RangeAnswer) throws {
        #expect(try #require(RangeRequest(parsing: "bytes=\(text)")).answer(completeLength: length) == expected)
    }

    @Test("A field made from an interval")
    func writing() {
        #expect(RangeRequest(0..<500)?.description == "bytes=0-499")
        #expect(RangeRequest(7..<Int64.max)?.description == "bytes=7-")
        #expect(RangeRequest(7..<7) == nil)
        #expect(RangeRequest(-7..<7) == nil)
        #expect(RangeRequest(parsing: "Bytes= 0-1, -3 ,4-")?.description == "bytes=0-1,-3,4-")
    }

    @Test("RFC 9110 §17.15: no request makes the response larger than the whole", arguments: propertySeeds)
    func noAmplification(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let value =
                "bytes="
                + source.text(from: ["0", "1", "9", "5", "-", ",", "-", " ", "99999999999999999999"], upTo: 60)
            guard let request = RangeRequest(parsing: value) else { continue }
            #expect(RangeRequest(parsing: request.description) == request)
            let length = Bool.random(using: &source) ? Int64.random(in: 0...3000, using: &source) : .max
            switch request.answer(completeLength: length) {
            case .part(let interval):
                #expect(!interval.isEmpty && interval.lowerBound >= 0 && interval.upperBound <= length)
            case .parts(let intervals):
                let sorted = intervals.sorted { $0.lowerBound < $1.lowerBound }
                #expect(intervals.count > 1 && sorted.allSatisfy { !$0.isEmpty && $0.upperBound <= length })
                for (left, right) in zip(sorted, sorted.dropFirst()) {
                    #expect(right.lowerBound - left.upperBound >= RangeRequest.partOverhead)
                }
            case .whole, .unsatisfiable:
                #expect(request.ranges.allSatisfy { $0.resolved(completeLength: length) == nil })
            }
        }
    }
}
