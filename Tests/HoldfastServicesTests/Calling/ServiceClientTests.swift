// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Greeting: Request {
    typealias Result = String
    var routes: HttpRoute { ["greeting"] }
}

private struct PlainService: HttpService {
    var apiUrl: any UrlConvertible { "api.example.com" }
}

@Suite("ServiceClient", .timeLimit(.minutes(20)))
struct ServiceClientTests {
    @Test("A service gains a cache and a retrier in one line, and shows what they did")
    func oneLine() async throws {
        let transport = ScriptedTransport([
            .respond(503), .respond(200, ["Cache-Control": "max-age=60"], body: "hello"),
        ])
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        let client = ServiceClient(
            PlainService(),
            transport: transport,
            cache: .inMemory(),
            retrierFactory: .default,
            configuration: configuration
        )
        #expect(try await Greeting().schedule(with: client) == "hello")
        let again = try await client.response(to: Greeting())
        #expect(again.value == "hello")
        #expect(again.response.source == .fresh)
        #expect(again.response.cacheDecision != nil)
        #expect(transport.sent.count == 2)
        #expect(transport.sent[0].request.url?.absoluteString == "https://api.example.com/greeting")
    }
}
