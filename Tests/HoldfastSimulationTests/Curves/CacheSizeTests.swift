// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastSimulation
@testable import HoldfastStorage

@Suite("Cache sizes")
struct CacheSizeTests {
    @Test(
        "Shares and bytes as people write them",
        arguments: [
            ("0.1%", 1_000), ("1%", 10_000), ("10%", 100_000), ("100%", 1_000_000), ("200%", 2_000_000),
            ("4096", 4_096),
            ("7B", 7), ("64kB", 64_000), ("64KB", 64_000), ("64MB", 64_000_000), ("1.5GB", 1_500_000_000),
            ("1KiB", 1_024),
            ("2mib", 2 << 20), ("1GiB", 1 << 30), ("1TiB", 1 << 40), ("1TB", 1_000_000_000_000), ("0.00001%", 0),
        ]
    )
    func readable(_ text: String, _ bytes: Int) throws {
        let size = try #require(CacheSize(text))
        #expect(size.bytes(uniqueBytes: 1_000_000) == bytes)
        #expect(size.description == text)
    }

    @Test(
        "Anything else is not a size",
        arguments: [
            "", "%", "0", "0%", "-1", "1e3", "many", "1 MB", "nan%", "inf", "1.2.3%", "0x10", "MB",
            "99999999999999999999",
            "9999999TiB", "1PB", "1%%",
        ]
    )
    func unreadable(_ text: String) {
        #expect(CacheSize(text) == nil)
    }

    @Test("Whole bytes are exact up to the largest number of them")
    func largest() throws {
        #expect(try #require(CacheSize("9223372036854775807")).bytes(uniqueBytes: 1) == .max)
        #expect(try #require(CacheSize("9007199254740993B")).bytes(uniqueBytes: 1) == 9_007_199_254_740_993)
        #expect(CacheSize("9223372036854775808") == nil)
        #expect(CacheSize("9223372036854775807KB") == nil)
    }

    @Test("A rate is between 0 and 1; what is no number counts as 1")
    func rates() throws {
        let size = try #require(CacheSize("100"))
        for rate: Double in [1, 2, .infinity, .nan] { #expect(size.bytes(uniqueBytes: 1_000, rate: rate) == 100) }
        for rate: Double in [0, -1] { #expect(size.bytes(uniqueBytes: 1_000, rate: rate) == 0) }
    }

    @Test("Lists in which 'curve' stands for twenty sizes; each size counts once")
    func lists() throws {
        #expect(try #require(CacheSize.list("1%,64MB,1%")).map(\.description) == ["1%", "64MB"])
        #expect(try #require(CacheSize.list("curve,100%,5%")).count == 21)
        for text in ["", "1%,", ",", "curve,x"] { #expect(CacheSize.list(text) == nil) }
        let curve = CacheSize.curve.map { $0.bytes(uniqueBytes: 1_000_000_000) }
        #expect(curve.count == 20 && curve == curve.sorted() && curve.first == 100_000 && curve.last == 1_000_000_000)
    }

    @Test("A sample's sizes in bytes are those of the whole, and shares are the same")
    func samples() throws {
        #expect(try #require(CacheSize("256MB")).bytes(uniqueBytes: 1_000, rate: 0.1) == 25_600_000)
        #expect(try #require(CacheSize("10%")).bytes(uniqueBytes: 1_000, rate: 0.1) == 100)
        #expect(try #require(CacheSize("100%")).bytes(uniqueBytes: .max) == .max)
    }
}
