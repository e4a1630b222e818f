// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What docs/caching.md shows of the hook and of credential fields, over real sockets.
@Suite("The time to live on the caching page", .timeLimit(.minutes(20)))
struct TimeToLivePageTests {
    /// Answers with a number for each request, and forbids to keep any.
    private static func server() throws -> LoopbackServer {
        try LoopbackServer.start { request in
            let key = request.values(of: "X-API-Key").joined()
            return LoopbackReply(fields: [("Cache-Control", "no-store")], body: "\(request.path) for \(key)")
        }
    }

    @Test("In memory and on disk, through URLSession and across a restart")
    func hook() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let transport = URLSessionTransport(configuration: .ephemeral)
        let client = Pipeline(transport: transport, hooks: [CachingServiceHook(ttl: .seconds(600))])
        for _ in 0..<2 {
            #expect(try await client.data(for: URLRequest(url: server.url("/a"))).0 == Data("/a for ".utf8))
        }
        #expect(server.requests.map(\.path) == ["/a"])
        try await DiskCacheTests.withDirectory { directory in
            for _ in 0..<2 {
                let hook = try await CachingServiceHook.onDisk(at: directory, ttl: .seconds(3600))
                let client = Pipeline(transport: transport, hooks: [hook])
                #expect(try await client.data(for: URLRequest(url: server.url("/b"))).0 == Data("/b for ".utf8))
                await hook.cache.close()
            }
        }
        #expect(server.requests.map(\.path) == ["/a", "/b"])
    }

    @Test("A field with a credential keeps two users apart")
    func credentialFields() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let transport = URLSessionTransport(configuration: .ephemeral)
        let client = Pipeline(transport: transport, hooks: [CachingServiceHook()])
        for key in ["a", "b", "a", "b"] {
            var request = URLRequest(url: server.url("/"))
            request.setValue(key, forHTTPHeaderField: "X-API-Key")
            var options = CallOptions()
            options.credentialFields = ["X-API-Key"]
            let response = try await client.send(request, options: options)
            #expect(try await response.body.data() == Data("/ for \(key)".utf8))
        }
        #expect(server.requests.count == 2)
    }
}
