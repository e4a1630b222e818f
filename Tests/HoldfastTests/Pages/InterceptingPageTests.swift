// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code of docs/clients/intercepting.md, block by block.
@Suite("Page: Sessions of code that is not yours", .timeLimit(.minutes(20)))
struct InterceptingPageTests {
    /// A client that takes a session and cannot be changed.
    private struct TheirClient {
        let session: URLSession

        func load(_ url: URL) async throws -> String {
            String(decoding: try await session.data(from: url).0, as: UTF8.self)
        }
    }

    private let pipeline = Pipeline(transport: ScriptedTransport([.respond(body: "piped")], repeatsLastStep: true))

    @Test("A session for somebody's client, until it is withdrawn")
    func session() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "plain") }
        let session = URLSession(configuration: .holdfast(pipeline))
        let client = TheirClient(session: session)
        #expect(try await client.load(server.url()) == "piped")
        pipeline.stopIntercepting()
        #expect(try await client.load(server.url()) == "plain")
    }

    @Test("An existing configuration, and a choice of requests")
    func existing() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(body: "plain") }
        defer { pipeline.stopIntercepting() }
        let configuration = URLSessionConfiguration.ephemeral
        let mine = configuration.intercepted(by: pipeline, matching: { $0.url?.host == "127.0.0.1" })
        let client = TheirClient(session: URLSession(configuration: mine))
        #expect(try await client.load(server.url()) == "piped")
        let other = try #require(URL(string: "http://localhost:\(server.port)/"))
        #expect(try await client.load(other) == "plain")
    }
}
