// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct PartialReuseTests {
    private func decide(
        _ range: String?,
        _ intervals: [Range<Int64>],
        of length: Int64? = 1000,
        stored: HeaderFields = ["ETag": "\"a\""],
        condition: String? = nil,
        method: RequestMethod = .get
    ) throws -> PartialReuse {
        var fields = HeaderFields()
        fields[.range] = range.map { "bytes=\($0)" }
        fields[.ifRange] = condition
        return PartialReuse.decide(
            request: RequestHead(method: method, target: try target(), fields: fields),
            stored: try storedForRanges(stored),
            ranges: try #require(StoredRanges(intervals: intervals, completeLength: length))
        )
    }

    private func completing(_ gap: Range<Int64>, _ range: String, validator: String = "\"a\"") -> PartialReuse {
        .complete(missing: gap, fields: [.range: "bytes=\(range)", .ifRange: validator])
    }

    @Test(
        "RFC 9111 §3.3: an incomplete response answers ranges that it contains completely",
        arguments: [
            ("0-99", .part(0..<100)), ("-100", .part(900..<1000)), ("900-", .part(900..<1000)),
            ("0-9,950-", .parts([0..<10, 950..<1000])), ("950-5000", .part(950..<1000)), ("1000-", .unsatisfiable),
        ] as [(String, RangeAnswer)]
    )
    func within(range: String, expected: RangeAnswer) throws {
        #expect(try decide(range, [0..<100, 900..<1000]) == .answer(expected))
        // No validator is needed for what is there.
        #expect(try decide(range, [0..<100, 900..<1000], stored: [:]) == .answer(expected))
    }

    @Test("RFC 9111 §3.3: missing bytes are requested with If-Range, in one interval")
    func completes() throws {
        #expect(try decide(nil, [0..<400]) == completing(400..<1000, "400-999"))
        #expect(try decide(nil, [0..<100, 900..<1000]) == completing(100..<900, "100-899"))
        #expect(try decide(nil, [100..<200]) == completing(0..<1000, "0-999"))
        #expect(try decide("50-149", [0..<100]) == completing(100..<150, "100-149"))
        #expect(try decide("-50", [0..<100]) == completing(950..<1000, "950-999"))
        #expect(try decide("0-9,200-299", [0..<100]) == completing(200..<300, "200-299"))
        let dated: HeaderFields = ["Last-Modified": date(-5), "Date": date(0)]
        #expect(try decide(nil, [0..<400], stored: dated) == completing(400..<1000, "400-999", validator: date(-5)))
    }

    @Test("RFC 9110 §15.3.7.3: nothing is completed without a strong validator")
    func forwards() throws {
        for stored in [[:], ["ETag": "W/\"a\""], ["Last-Modified": date(0), "Date": date(0)]] as [HeaderFields] {
            #expect(try decide(nil, [0..<400], stored: stored) == .forward)
            #expect(try decide("0-499", [0..<400], stored: stored) == .forward)
        }
        #expect(try decide(nil, [0..<400], method: .head) == .forward)
    }

    @Test("No more is requested than the caller wants")
    func budget() throws {
        #expect(try decide("0-0,-1", [500..<501]) == .forward)
        #expect(try decide("0-0,-1", [0..<1]) == completing(999..<1000, "999-999"))
    }

    @Test("Bytes between two ranges are not requested if nobody wants them", arguments: [1000, nil] as [Int64?])
    func separate(length: Int64?) throws {
        let expected = PartialReuse.answer(.parts([0..<10, 20..<30]))
        #expect(try decide("0-9,20-29", [0..<10, 20..<30], of: length) == expected)
        #expect(try decide("0-9,20-29", [0..<30], of: length) == .answer(.part(0..<30)))
        #expect(try decide("0-4,5-9", [0..<10, 20..<30], of: length) == .answer(.part(0..<10)))
    }

    @Test("RFC 9110 §13.1.5: a range whose If-Range fails becomes a request for the whole")
    func failedCondition() throws {
        #expect(try decide("0-9", [0..<100], condition: "\"b\"") == completing(100..<1000, "100-999"))
        #expect(try decide("0-9", [0..<100], condition: "\"a\"") == .answer(.part(0..<10)))
    }

    @Test("A complete response answers every range")
    func complete() throws {
        #expect(try decide(nil, [0..<1000], stored: [:]) == .answer(.whole))
        #expect(try decide(nil, [0..<1000], method: .head) == .answer(.whole))
        #expect(try decide("5-", [0..<1000], stored: [:]) == .answer(.part(5..<1000)))
        #expect(try decide(nil, [], of: 0) == .answer(.whole))
    }

    @Test("Without a known length, only ranges with both ends are answered")
    func unknownLength() throws {
        #expect(try decide("10-19", [0..<100], of: nil) == .answer(.part(10..<20)))
        #expect(try decide("90-109", [0..<100], of: nil) == completing(100..<110, "100-109"))
        for range in ["10-", "-5", "0-9,50-", "200-299,400-499"] {
            #expect(try decide(range, [0..<100], of: nil) == .forward)
        }
        #expect(try decide(nil, [0..<100], of: nil) == completing(100..<Int64.max, "100-"))
        #expect(try decide(nil, [5..<100], of: nil) == .forward)
        #expect(try decide(nil, [0..<100], of: nil, stored: [:]) == .forward)
    }

    @Test("Responses contain stored bytes only, and a gap lies within the requested range", arguments: propertySeeds)
    func property(seed: UInt64) throws {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<1500 {
            let length = Int64.random(in: 0...600, using: &source)
            var ranges = StoredRanges(completeLength: Bool.random(using: &source) ? length : nil)
            for _ in 0..<Int.random(in: 0...4, using: &source) where length > 0 {
                let low = Int64.random(in: 0..<length, using: &source)
                _ = ranges.insert(low..<Int64.random(in: (low + 1)...length, using: &source))
            }
            let text = "bytes=" + source.text(from: ["1", "2", "0", "5", "-", "-", ","], upTo: 12)
            let request = RequestHead(target: try target(), fields: ["Range": text])
            let stored = try storedForRanges(["ETag": "\"a\""])
            switch PartialReuse.decide(request: request, stored: stored, ranges: ranges) {
            case .answer(.part(let interval)): #expect(ranges.covers(interval) && !interval.isEmpty)
            case .answer(.parts(let several)): #expect(several.allSatisfy(ranges.covers))
            case .answer(.whole): #expect(ranges.isComplete)
            case .answer(.unsatisfiable): #expect(ranges.completeLength != nil)
            case .complete(let missing, _): #expect(!ranges.covers(missing) && !missing.isEmpty)
            case .forward: break
            }
        }
    }
}
