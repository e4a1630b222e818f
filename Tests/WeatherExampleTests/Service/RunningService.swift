// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import WeatherService

#if canImport(FoundationNetworking)
    // Foundation on Linux keeps URLSession in a module of its own.
    import FoundationNetworking
#endif

/// A service in this process, whose clock stands still, and a session to ask it with.
final class RunningService: Sendable {
    let server: LoopbackServer
    let session = URLSession(configuration: .ephemeral)

    init(_ change: (inout ServiceOptions) -> Void = { _ in }) throws {
        var options = ServiceOptions()
        options.delay = 0
        options.failEvery = 0
        options.retryAfter = 0
        change(&options)
        server = try WeatherService.start(options, seconds: { 0 })
    }

    var url: URL { server.url("").absoluteURL }

    func stop() {
        session.invalidateAndCancel()
        server.stop()
    }

    func ask(
        _ target: String,
        method: String = "GET",
        _ fields: [String: String] = [:]
    ) async throws -> (response: HTTPURLResponse, text: String) {
        var request = URLRequest(url: server.url(target))
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await session.data(for: request)
        return (try #require(response as? HTTPURLResponse), String(decoding: data, as: UTF8.self))
    }

    func ledger() async throws -> Ledger {
        try JSONDecoder().decode(Ledger.self, from: Data(try await ask("/ledger").text.utf8))
    }
}
