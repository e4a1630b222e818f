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

/// Follows what a refused response names.
private struct Moved: InEndpoint {
    typealias Service = EndpointBed.Service
    static let method = Method.post
    typealias Input = [String: Int]
    let path = "moved"

    func handle(_ error: EndpointError, response: Response) -> ErrorHandling {
        guard error.status == 409, let place = response.fields["X-Place"], let url = URL(string: place) else {
            return .error(error)
        }
        return .redirect(to: url)
    }
}

@Suite("Redirects of endpoints", .timeLimit(.minutes(20)))
struct EndpointRedirectTests {
    private struct Custom: Error {}

    private struct Renamed: EmptyEndpoint {
        typealias Service = EndpointBed.Service
        let path = "renamed"
        func handle(_ error: EndpointError, response: Response) -> ErrorHandling { .error(Custom()) }
    }

    private func send(_ authorization: Authorization, to place: String) async throws -> ScriptedTransport {
        let transport = ScriptedTransport([.respond(409, ["X-Place": place]), .respond(204)])
        let service = EndpointBed.Service("https://example.com", authorization)
        let client = EndpointBed.client(service, transport, retrierFactory: .default)
        try await Moved().makeRequest(to: client, with: ["a": 1])
        return transport
    }

    @Test(
        "D-T24: a redirect by handle sends the same method and content, without credentials to another host",
        arguments: [
            (Authorization.bearer("t"), "Authorization"), (.custom(key: "X-API-Key", value: "k"), "X-API-Key"),
        ]
    )
    func otherHost(_ authorization: Authorization, _ field: String) async throws {
        let transport = try await send(authorization, to: "https://other.example/there?x=1")
        try #require(transport.sent.count == 2)
        let sent = transport.sent[1]
        #expect(sent.request.url?.absoluteString == "https://other.example/there?x=1")
        #expect(sent.request.httpMethod == "POST")
        #expect(sent.body.map { Array($0) } == Array(#"{"a":1}"#.utf8))
        #expect(sent.request.value(forHTTPHeaderField: "Content-Type") == "application/json")
        #expect(transport.sent[0].request.value(forHTTPHeaderField: field) != nil)
        #expect(sent.request.value(forHTTPHeaderField: field) == nil)
    }

    @Test("D-T24: within one origin the credential stays")
    func sameHost() async throws {
        let transport = try await send(.bearer("t"), to: "https://example.com/there")
        #expect(
            transport.sent.map { $0.request.value(forHTTPHeaderField: "Authorization") } == ["Bearer t", "Bearer t"]
        )
    }

    @Test("D-T24: a call is redirected 16 times at most")
    func limit() async throws {
        let transport = ScriptedTransport(
            [.respond(409, ["X-Place": "https://example.com/moved"])],
            repeatsLastStep: true
        )
        let client = EndpointBed.client(EndpointBed.Service("https://example.com"), transport)
        let error = await endpointError { try await Moved().makeRequest(to: client, with: [:]) }
        #expect(error?.status == 409)
        #expect(transport.sent.count == 17)
    }

    @Test("An error of the endpoint's own reaches the caller unchanged")
    func ownError() async throws {
        let client = EndpointBed.client(EndpointBed.Service(), ScriptedTransport([.respond(404)]))
        await #expect(throws: Custom.self) { try await Renamed().makeRequest(to: client) }
    }
}
