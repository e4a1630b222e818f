// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting
import Testing

@Suite struct RetryAfterTests {
    @Test("Vectors of Retry-After (RFC 9110 §10.2.3)", arguments: VectorFile.retryAfter?.cases ?? [])
    func vectors(vector: RetryAfterVectors.Case) throws {
        var fields = HeaderFields(vector.headerLines.map { HeaderFields.Line(name: .retryAfter, value: $0) })
        fields[.date] = vector.dateHeader
        if vector.age > 0 { fields[.age] = String(vector.age) }
        let formatter = ISO8601DateFormatter()
        if vector.receivedAt.contains(".") { formatter.formatOptions.insert(.withFractionalSeconds) }
        let received = try #require(formatter.date(from: vector.receivedAt))
        let milliseconds = (received.timeIntervalSince1970 * 1000).rounded()
        let delay = RetryAfter.delay(
            fields,
            receivedAt: Timestamp(millisecondsSinceEpoch: Int64(milliseconds))
        )
        #expect(delay == vector.expectedDelay.map { .milliseconds(Int64(($0 * 1000).rounded())) })
    }

    @Test(
        "More readings",
        arguments: [
            (["Retry-After": "99999999999999999999"], 1_000_000_000), (["Retry-After": " 5 "], 5), ([:], nil),
            (["Retry-After": "5", "retry-after": "9"], 9), (["Retry-After": "5", "Age": "9"], 0),
            (["Retry-After": date(60), "Date": date(20), "Age": "10"], 30),
            (["Retry-After": date(60), "Date": "x"], 60),
            (["Retry-After": "9 , 5"], 9), (["Retry-After": "5,x"], nil), (["Retry-After": "+5"], nil),
            (["Retry-After": "0x10"], nil),
            (["Retry-After": date(-60)], 0), (["Retry-After": "soon", "retry-after": date(7)], 7),
            (["Retry-After": "Thu Sep 17 12:00:09 2026"], 9),
            (["Retry-After": "3, " + date(7)], 7), (["Retry-After": date(7) + ", " + date(9)], 9),
            (["Retry-After": date(7) + ", Thu Sep 17 12:00:09 2026, 4"], 9), (["Retry-After": date(7) + ", soon"], nil),
            (["Retry-After": "Thu, 3"], nil), (["Retry-After": ","], nil),
        ] as [(HeaderFields, Int64?)]
    )
    func furtherReadings(fields: HeaderFields, expected: Int64?) {
        #expect(RetryAfter.delay(fields, receivedAt: .noon) == expected.map { .seconds($0) })
    }

    @Test(arguments: propertySeeds)
    func neverTrapsAndNeverNegative(seed: UInt64) {
        var source = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let fields: HeaderFields = [
                "Retry-After": source.text(from: ["9", "0", " ", "Sun, 06 Nov 1994 08:49:37 GMT", "-"], upTo: 24),
                "Age": String(source.next()),
                "Date": HTTPDate(Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next()))).description,
            ]
            let received = Timestamp(millisecondsSinceEpoch: Int64(bitPattern: source.next()))
            let delay = RetryAfter.delay(fields, receivedAt: received)
            #expect(delay.map { $0 >= .zero } ?? true)
        }
    }
}
