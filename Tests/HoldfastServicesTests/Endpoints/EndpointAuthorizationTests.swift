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

private struct Open: EmptyEndpoint {
    typealias Service = EndpointBed.Service
    static let authorizationRequirement = AuthorizationRequirement.none
    let path = "open"
}

private struct Secret: OutEndpoint {
    typealias Service = EndpointBed.Service
    typealias Output = String
    static let authorizationRequirement = AuthorizationRequirement.required
    let path = "secret"
}

private struct Signed: EmptyEndpoint {
    typealias Service = EndpointBed.Service
    let path = "signed"
    func configure(_ request: inout URLRequest) { request.setValue("Own o", forHTTPHeaderField: "Authorization") }
}

private typealias Bed = EndpointBed

@Suite("Authorization of endpoints", .timeLimit(.minutes(20)))
struct EndpointAuthorizationTests {
    private let transport = ScriptedTransport([.respond(200, body: "ok")], repeatsLastStep: true)

    private func sent(_ field: String = "Authorization") -> [String?] {
        transport.sent.map { $0.request.value(forHTTPHeaderField: field) }
    }

    @Test("D-T4: an endpoint that wants no credential never sends the service's")
    func none() async throws {
        try await Open().makeRequest(to: Bed.client(Bed.Service("https://example.com", .bearer("t")), transport))
        #expect(sent() == [nil])
    }

    @Test("D-T5: an optional credential is sent if the service has one")
    func optional() async throws {
        try await Bed.CheckStatus().makeRequest(to: Bed.client(Bed.Service("https://example.com"), transport))
        try await Bed.CheckStatus().makeRequest(
            to: Bed.client(Bed.Service("https://example.com", .bearer("t")), transport)
        )
        #expect(sent() == [nil, "Bearer t"])
    }

    @Test(
        "D-T6: a missing required credential fails the call before anything is scheduled, and is never retried"
    )
    func required() async throws {
        let service = Bed.Service()
        let client = Bed.client(service, transport, retrierFactory: .default)
        let error = await endpointError { _ = try await Secret().makeRequest(to: client) }
        #expect(error?.code == .unauthorized)
        #expect(error?.reason.contains("not logged in") == true)
        #expect(error?.isInternal == false)
        #expect(transport.sent.isEmpty)
        #expect(service.recorder.counts == FailureRecorder.Counts(failures: 1, processed: 1))
    }

    @Test(
        "D-T7: a required credential is sent in its own form",
        arguments: [
            (Authorization.bearer("t"), "Authorization", "Bearer t"),
            (.basic("user", "secret"), "Authorization", "Basic dXNlcjpzZWNyZXQ="),
            (.custom(key: "X-API-Key", value: "k"), "X-API-Key", "k"),
        ]
    )
    func forms(_ authorization: Authorization, _ field: String, _ value: String) async throws {
        let client = Bed.client(Bed.Service("https://example.com", authorization), transport)
        #expect(try await Secret().makeRequest(to: client) == "ok")
        #expect(sent(field) == [value])
        if field != "Authorization" { #expect(sent() == [nil]) }
    }

    @Test("D-T21: what configure sets in the request is final, Authorization included")
    func configureWins() async throws {
        try await Signed().makeRequest(to: Bed.client(Bed.Service("https://example.com", .bearer("t")), transport))
        #expect(sent() == ["Own o"])
    }

    @Test("D-T22: a credential that changes between two attempts is the new one in the second")
    func renewed() async throws {
        let service = Bed.Service("https://example.com", .bearer("old"))
        let transport = ScriptedTransport { request in
            if request.value(forHTTPHeaderField: "Authorization") == "Bearer new" { return .respond(200, body: "ok") }
            service.credential.set(.bearer("new"))
            return .respond(503)
        }
        let client = Bed.client(service, transport, retrierFactory: .default)
        #expect(try await Secret().makeRequest(to: client) == "ok")
        #expect(
            transport.sent.map { $0.request.value(forHTTPHeaderField: "Authorization") } == [
                "Bearer old", "Bearer new",
            ]
        )
    }

    @Test(
        "D-T23: what was stored for one credential is not used for another",
        arguments: [
            (Authorization.bearer("a"), Authorization.bearer("b")), (.bearer("a"), .basic("a", "a")),
            (.bearer("a"), .none),
            (.custom(key: "X-API-Key", value: "a"), .custom(key: "X-API-Key", value: "b")),
            (.custom(key: "X-API-Key", value: "a"), .none),
        ]
    )
    func partition(_ one: Authorization, _ other: Authorization) async throws {
        let service = Bed.Service("https://example.com", one)
        let transport = ScriptedTransport(
            [.respond(200, ["Cache-Control": "max-age=60"], body: #"{"name":"x"}"#)],
            repeatsLastStep: true
        )
        let client = Bed.client(service, transport, cache: .inMemory())
        let endpoint = Bed.GetObject(objectId: 1)
        _ = try await endpoint.makeRequest(to: client)
        #expect(try await endpoint.response(to: client).response.source == .fresh)
        service.credential.set(other)
        #expect(try await endpoint.response(to: client).response.source == .network(attempts: 1))
        #expect(transport.sent.count == 2)
    }
}
