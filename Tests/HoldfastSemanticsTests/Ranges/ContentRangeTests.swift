// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct ContentRangeTests {
    @Test(
        "RFC 9110 §14.4: valid fields",
        arguments: [
            ("bytes 0-499/1234", 0..<500, 1234), ("bytes 734-1233/1234", 734..<1234, 1234),
            ("bytes 42-1233/*", 42..<1234, nil), ("bytes */1234", nil, 1234), ("bytes */0", nil, 0),
            ("Bytes 0-0/1", 0..<1, 1),
        ] as [(String, Range<Int64>?, Int64?)]
    )
    func parsing(value: String, interval: Range<Int64>?, length: Int64?) throws {
        let range = try #require(ContentRange(parsing: value))
        #expect(range.interval == interval && range.completeLength == length)
        #expect(range.description.dropFirst(5) == value.dropFirst(5))
        #expect(ContentRange(["content-range": value]) == range)
    }

    @Test(
        "RFC 9110 §14.4: invalid fields",
        arguments: [
            "", "bytes", "bytes 0-1", "bytes 0-1/", "bytes 2-1/5", "bytes 0-5/5", "bytes 0-6/5", "bytes */*",
            "bytes 0-/5",
            "bytes -1/5", "bytes=0-1/5", "items 0-1/5", "bytes 0-1/5/", "bytes 0-1/5/6", "bytes 0 - 1/5",
            "bytes 0-1/5x",
            "bytes 0-1/-5", "bytes */99999999999999999999", "bytes 0-99999999999999999999/*",
            "bytes 0-9223372036854775806/*", "bytes 0-1/9223372036854775807", "bytes 0-1/2, bytes 0-1/2",
        ]
    )
    func invalid(value: String) {
        #expect(ContentRange(parsing: value) == nil)
    }

    @Test("A repeated field is ignored, and numbers from code are checked")
    func checks() {
        #expect(ContentRange(["Content-Range": "bytes 0-1/2", "content-range": "bytes 0-1/2"]) == nil)
        #expect(ContentRange([:]) == nil)
        #expect(ContentRange(0..<0, completeLength: 5) == nil)
        #expect(ContentRange(-1..<3, completeLength: 5) == nil)
        #expect(ContentRange(0..<6, completeLength: 5) == nil)
        #expect(ContentRange(0..<Int64.max, completeLength: nil) == nil)
        #expect(ContentRange(0..<5, completeLength: .max) == nil)
        #expect(ContentRange(unsatisfiedOf: -5).description == "bytes */0")
    }

    @Test("Random values never trap, and what is read is written back unchanged", arguments: propertySeeds)
    func arbitrary(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        var read = 0
        for _ in 0..<4000 {
            let tail = source.text(from: ["0", "7", "-", "/", "*", "99999999999999999999", " "], upTo: 8)
            let value = Bool.random(using: &source) ? "bytes " + tail : tail
            guard let range = ContentRange(parsing: value) else { continue }
            read += 1
            #expect(ContentRange(parsing: range.description) == range)
            if let interval = range.interval {
                #expect(!interval.isEmpty && interval.upperBound <= range.completeLength ?? .max)
            }
        }
        #expect(read > 0)
    }
}
