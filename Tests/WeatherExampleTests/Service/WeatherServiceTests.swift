// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import WeatherService

#if canImport(FoundationNetworking)
    // Foundation on Linux keeps HTTPURLResponse in a module of its own.
    import FoundationNetworking
#endif

@Suite("The weather service", .timeLimit(.minutes(20)))
struct WeatherServiceTests {
    @Test(
        "Each response has its freshness and a validator",
        arguments: [
            ("/stations", "max-age=3600"), ("/stations/3/current", "max-age=1"),
            ("/stations/3/forecast?days=2", "max-age=600, stale-while-revalidate=600"),
        ]
    )
    func freshness(_ target: String, _ cacheControl: String) async throws {
        let service = try RunningService()
        defer { service.stop() }
        let first = try await service.ask(target)
        #expect(first.response.statusCode == 200)
        #expect(first.response.value(forHTTPHeaderField: "Cache-Control") == cacheControl)
        #expect(try JSONSerialization.jsonObject(with: Data(first.text.utf8)) is [String: Any])
        let tag = try #require(first.response.value(forHTTPHeaderField: "ETag"))
        let second = try await service.ask(target, ["If-None-Match": tag])
        #expect(second.response.statusCode == 304)
        #expect(second.response.value(forHTTPHeaderField: "ETag") == tag)
        let third = try await service.ask(target, ["If-None-Match": "\"other\""])
        #expect(third.text == first.text)
        let ledger = try await service.ledger()
        #expect(ledger.requests == 3)
        #expect(ledger.notModified == 1)
        #expect(ledger.bytes == 2 * first.text.utf8.count)
    }

    @Test("Current weather varies by language, and says so")
    func language() async throws {
        let service = try RunningService()
        defer { service.stop() }
        let german = try await service.ask("/stations/0/current", ["Accept-Language": "de-AT, en;q=0.5"])
        let english = try await service.ask("/stations/0/current", ["Accept-Language": "en"])
        let unknown = try await service.ask("/stations/0/current", ["Accept-Language": "xx"])
        #expect(german.text.contains("klar"))
        #expect(english.text.contains("clear"))
        #expect(unknown.text == english.text)
        #expect(german.response.value(forHTTPHeaderField: "Vary") == "Accept-Language")
        #expect(
            german.response.value(forHTTPHeaderField: "ETag") != english.response.value(forHTTPHeaderField: "ETag")
        )
    }

    @Test("A client that asks too often gets 429 with Retry-After, and others are not affected")
    func limits() async throws {
        let service = try RunningService {
            $0.capacity = 2
            $0.refill = 1
        }
        defer { service.stop() }
        var statuses: [Int] = []
        var last: (response: HTTPURLResponse, text: String)?
        for _ in 0..<4 {
            let answer = try await service.ask("/stations", ["X-API-Key": "a"])
            statuses.append(answer.response.statusCode)
            last = answer
        }
        #expect(statuses == [200, 200, 429, 429])
        #expect(last?.response.value(forHTTPHeaderField: "Retry-After") == "1")
        #expect(last?.response.value(forHTTPHeaderField: "RateLimit") == "\"key\";r=0;t=1")
        #expect(try await service.ask("/stations", ["X-API-Key": "b"]).response.statusCode == 200)
        let ledger = try await service.ledger()
        #expect(ledger.tooManyRequests == 2)
        #expect(ledger.stations == 5)
    }

    @Test("One in a fixed number of requests fails with 503 and Retry-After")
    func failures() async throws {
        let service = try RunningService {
            $0.failEvery = 3
            $0.retryAfter = 7
        }
        defer { service.stop() }
        var statuses: [Int] = []
        for _ in 0..<6 { statuses.append(try await service.ask("/stations").response.statusCode) }
        #expect(statuses == [200, 200, 503, 200, 200, 503])
        #expect(try await service.ledger().unavailable == 2)
    }

    @Test("A report changes the station's weather and names what it invalidates")
    func reports() async throws {
        let service = try RunningService()
        defer { service.stop() }
        let before = try await service.ask("/stations/2/current")
        let report = try await service.ask("/reports?station=2", method: "POST")
        #expect(report.response.statusCode == 201)
        #expect(report.response.value(forHTTPHeaderField: "Cache-Group-Invalidation") == "\"station-2\"")
        #expect(before.response.value(forHTTPHeaderField: "Cache-Groups") == "\"station-2\"")
        let after = try await service.ask("/stations/2/current")
        #expect(after.text.contains(#""reports":1"#))
        #expect(
            after.response.value(forHTTPHeaderField: "ETag") != before.response.value(forHTTPHeaderField: "ETag")
        )
        #expect(try await service.ledger().reports == 1)
    }

    @Test(
        "An unknown path gives 404, and the ledger counts it",
        arguments: [
            "/", "/stations/8/current", "/stations/-1/current", "/stations/x/forecast", "/stations/1/forecast?days=99",
        ]
    )
    func unknown(_ target: String) async throws {
        let service = try RunningService()
        defer { service.stop() }
        #expect(try await service.ask(target).response.statusCode == 404)
        #expect(try await service.ledger().other == 1)
    }
}
