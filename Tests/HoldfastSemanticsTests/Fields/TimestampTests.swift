// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

@Suite struct TimestampTests {
    @Test func arithmeticKeepsMilliseconds() {
        let start = Timestamp(secondsSinceEpoch: 10)
        #expect(start.advanced(by: .milliseconds(1500)).millisecondsSinceEpoch == 11_500)
        #expect((start + .seconds(-20)).millisecondsSinceEpoch == -10_000)
        #expect(Timestamp(secondsSinceEpoch: 12) - start == .seconds(2))
        #expect(start.duration(to: Timestamp(secondsSinceEpoch: 3)) == .seconds(-7))
        #expect(start < Timestamp(secondsSinceEpoch: 11))
    }

    @Test(arguments: [
        (Int64(-1), Int64(-1)), (0, 0), (999, 0), (1000, 1), (-999, -1), (-1000, -1), (-1001, -2),
    ])
    func secondsRoundDown(milliseconds: Int64, seconds: Int64) {
        #expect(Timestamp(millisecondsSinceEpoch: milliseconds).secondsSinceEpoch == seconds)
    }

    @Test func everythingSaturates() {
        let huge = Duration(secondsComponent: .max, attosecondsComponent: 0)
        #expect(Timestamp.distantFuture + .seconds(1) == .distantFuture)
        #expect(Timestamp.distantPast + .seconds(-1) == .distantPast)
        #expect(Timestamp.noon + huge == .distantFuture)
        #expect(Timestamp(secondsSinceEpoch: -1) - huge == .distantPast)
        #expect(Timestamp(secondsSinceEpoch: .max) == .distantFuture)
        #expect(Timestamp(secondsSinceEpoch: .min) == .distantPast)
        #expect(Timestamp.distantFuture - .distantPast == .milliseconds(Int64.max))
        #expect(Timestamp.distantPast - .distantFuture == .milliseconds(Int64.min))
    }
}

extension Timestamp {
    fileprivate static func - (instant: Timestamp, duration: Duration) -> Timestamp {
        instant + (.zero - duration)
    }
}
