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

@Suite("Endpoint kinds", .timeLimit(.minutes(20)))
struct EndpointKindTests {
    @Test("D-T8: an endpoint that declares nothing is a GET of JSON, with the credential where there is one")
    func defaults() async throws {
        let transport = ScriptedTransport([.respond(204)])
        try await EndpointBed.CheckStatus().makeRequest(to: ServiceClient(EndpointBed.Service(), transport: transport))
        let sent = try #require(transport.sent.first?.request)
        #expect(sent.httpMethod == "GET")
        #expect(sent.url?.absoluteString == "https://example.com/api/v1/status")
        #expect(sent.value(forHTTPHeaderField: "Accept") == "application/json")
    }
}
