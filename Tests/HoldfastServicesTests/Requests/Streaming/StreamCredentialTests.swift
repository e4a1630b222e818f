// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Streams: credentials and close reasons", .timeLimit(.minutes(20)))
struct StreamCredentialTests {
    private struct Private: StreamRequest {
        typealias Message = String
        typealias Result = String
        var header: HttpHeader = [:]
        var authorizationRequirement: AuthorizationRequirement { .required }
    }

    private func client(_ service: StreamService) -> ServiceClient<StreamService> {
        var configuration = PipelineConfiguration()
        configuration.authorization = AuthorizationRefresh(
            credential: "token",
            for: ["https://api.example.com"],
            apply: { token, request in request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") },
            refresh: { _ in "token" }
        )
        return ServiceClient(service, transport: ScriptedTransport([]), configuration: configuration)
    }

    @Test("A stream that needs a credential does not open with only the pipeline's")
    func required() async throws {
        let transport = ScriptedStreamTransport()
        let stream = Private().schedule(with: client(StreamService()), over: transport)
        let error = await #expect(throws: ServiceError.self) { try await stream.waitUntilOpen() }
        #expect(error?.code == .authorizationFailed)
        #expect(transport.requests.isEmpty)
    }

    @Test(
        "Any credential of the service or of the request itself is enough",
        arguments: [Authorization.bearer("t"), .custom(key: "X-API-Key", value: "k"), .none]
    )
    func credential(_ credential: Authorization) async throws {
        let transport = ScriptedStreamTransport()
        var request = Private()
        if case .none = credential { request.header = ["Authorization": "own"] }
        let stream = request.schedule(with: client(StreamService(credential: credential)), over: transport)
        try await stream.waitUntilOpen()
        #expect(transport.requests.count == 1)
    }

    @Test("A long reason is cut between characters, and quickly")
    func longReason() async throws {
        let transport = ScriptedStreamTransport()
        let stream = ChatRequest().schedule(with: ServiceClient(StreamService()), over: transport)
        try await stream.waitUntilOpen()
        stream.close(reason: String(repeating: "é", count: 500_000))
        #expect(transport.connection.closes.first?.reason == String(repeating: "é", count: 61))
    }
}
