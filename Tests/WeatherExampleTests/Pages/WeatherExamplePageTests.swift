// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

@testable import WeatherExample
@testable import WeatherService

#if canImport(FoundationNetworking)
    // Foundation on Linux keeps URLSession in a module of its own.
    import FoundationNetworking
#endif

@Suite("docs/clients/weather-example.md", .timeLimit(.minutes(20)))
struct WeatherExamplePageTests {
    @Test("The two functions over URLSession, and the pipeline behind the second one")
    func functions() async throws {
        let service = try RunningService { $0.currentAge = 60 }
        defer { service.stop() }
        let session = service.session
        let transport = URLSessionTransport()
        defer { transport.invalidate() }
        let pipeline = Pipeline(transport: transport, cache: .inMemory(), retrierFactory: .default)
        func readBefore(_ request: URLRequest) async throws -> Reading {
            let (data, response) = try await session.data(for: request)
            return Reading(data, response: response)
        }
        func readAfter(_ request: URLRequest) async throws -> Reading {
            let (data, response) = try await pipeline.data(for: request)
            return Reading(data, response: response)
        }
        let request = Question(subject: .current(station: 1), language: "en").request(to: service.url, key: "page")
        let plain = try await readBefore(request)
        for _ in 0..<3 { #expect(try await readAfter(request) == plain) }
        #expect(service.server.requests.count == 2)
    }
}
