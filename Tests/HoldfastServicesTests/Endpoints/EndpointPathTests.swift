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

private struct Anything: EmptyEndpoint {
    typealias Service = EndpointBed.Service
    let path: String
    var baseURLOverride: URL?
}

@Suite("Paths of endpoints", .timeLimit(.minutes(20)))
struct EndpointPathTests {
    /// Where a call goes.
    private func target(_ base: String, _ endpoint: Anything) async throws -> String? {
        let transport = ScriptedTransport([.respond(204)])
        try await endpoint.makeRequest(to: EndpointBed.client(EndpointBed.Service(base), transport))
        return transport.sent.first?.request.url?.absoluteString
    }

    @Test(
        "D-T1: a path is appended to the base URL, with one slash between; an empty one leaves it unchanged",
        arguments: [
            ("https://example.com/api/v1", "status", "https://example.com/api/v1/status"),
            ("https://example.com/api/v1/", "status", "https://example.com/api/v1/status"),
            ("https://example.com/api/v1", "/status", "https://example.com/api/v1/status"),
            ("https://example.com/api/v1", "status/", "https://example.com/api/v1/status/"),
            ("https://example.com/api/v1", "", "https://example.com/api/v1"),
            ("https://example.com/api/v1/", "", "https://example.com/api/v1/"),
            ("http://example.com/api", "status", "http://example.com/api/status"),
            ("https://example.com/api?key=1", "status", "https://example.com/api/status?key=1"),
        ]
    )
    func join(_ base: String, _ path: String, _ expected: String) async throws {
        #expect(try await target(base, Anything(path: path)) == expected)
    }

    @Test("D-T2: a path made from the endpoint's own values gives a different URL for each")
    func instancePath() async throws {
        let transport = ScriptedTransport([.respond(body: #"{"name":"a"}"#)], repeatsLastStep: true)
        let client = EndpointBed.client(EndpointBed.Service(), transport)
        for number in [7, 8] { _ = try await EndpointBed.GetObject(objectId: number).makeRequest(to: client) }
        let urls = transport.sent.compactMap { $0.request.url?.path }
        #expect(urls == ["/api/v1/object/7", "/api/v1/object/8"])
    }

    @Test(
        "D-T3: a path is text: special characters are percent-encoded",
        arguments: [
            ("a?b", "https://example.com/a%3Fb"), ("a b", "https://example.com/a%20b"),
            ("a%20b", "https://example.com/a%2520b"), ("a#b", "https://example.com/a%23b"),
            ("näh/é", "https://example.com/n%C3%A4h/%C3%A9"),
        ]
    )
    func special(_ path: String, _ expected: String) async throws {
        #expect(try await target("https://example.com", Anything(path: path)) == expected)
    }

    @Test("Dot segments in a path cannot lead elsewhere", arguments: ["../admin", "object/../x", "./a"])
    func dotSegments(_ path: String) async throws {
        let error = await endpointError { _ = try await target("https://example.com/api", Anything(path: path)) }
        #expect(error?.code == .badRequest)
    }

    @Test("An endpoint may have another base URL, scheme included")
    func override() async throws {
        let endpoint = Anything(path: "b", baseURLOverride: URL(string: "http://other.example/a"))
        #expect(try await target("https://example.com/api", endpoint) == "http://other.example/a/b")
    }
}
