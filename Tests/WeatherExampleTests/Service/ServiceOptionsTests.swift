// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

@testable import WeatherService

@Suite("Rate limits and options of the weather service")
struct ServiceOptionsTests {
    @Test("A bucket gives what it holds, refills, and says when to come back")
    func bucket() {
        var bucket = TokenBucket(capacity: 2, refill: 4, now: 10)
        #expect(bucket.take(now: 10) == nil)
        #expect(bucket.take(now: 10) == nil)
        #expect(bucket.take(now: 10) == 1)
        #expect(bucket.take(now: 10.25) == nil)
        #expect(bucket.take(now: 10.25) == 1)
        #expect(bucket.take(now: 100) == nil)
        #expect(bucket.left == 1)
        #expect(bucket.take(now: 0) == nil)
        #expect(bucket.take(now: 0) == 1)
    }

    @Test("A bucket that never refills says a minute, a slow one the seconds it takes")
    func slowBuckets() {
        var dry = TokenBucket(capacity: 0, refill: 0, now: 0)
        #expect(dry.take(now: 1_000) == 60)
        var slow = TokenBucket(capacity: 0, refill: 1, now: 0)
        #expect(slow.take(now: 0) == 1)
    }

    @Test("Options are pairs of name and number")
    func options() throws {
        let options = try ServiceOptions(parsing: ["--delay-ms", "0", "--current-age", "9", "--capacity", "7"])
        #expect(options.delay == 0)
        #expect(options.currentAge == 9)
        #expect(options.capacity == 7)
        #expect(try ServiceOptions(parsing: []) == ServiceOptions())
    }

    @Test(
        "Anything else is refused",
        arguments: [["--x", "1"], ["--capacity"], ["--capacity", "-1"], ["--delay-ms", "a"]]
    )
    func refused(_ words: [String]) {
        #expect(throws: ServiceOptions.Usage.self) { try ServiceOptions(parsing: words) }
    }
}
