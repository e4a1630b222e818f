// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastTesting
    import NIOHTTP1
    import Testing

    @testable import HoldfastAsyncHTTPClient

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("Redirects with a client that follows them itself", .timeLimit(.minutes(20)))
    struct RedirectTests {
        private func server() throws -> LoopbackServer {
            try LoopbackServer.start { request in
                guard let status = Int(request.path.dropFirst()) else {
                    return LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "there")
                }
                return LoopbackReply(status, fields: [("Location", "/there")], body: "moved")
            }
        }

        @Test("Redirects are returned to the pipeline all the same", arguments: [301, 302, 307, 308], ["GET", "PUT"])
        func handedUp(_ status: Int, _ method: String) async throws {
            let server = try server()
            let transport = AsyncHTTPClientTransport(client: .shared)
            var request = URLRequest(url: server.url("/\(status)"))
            request.httpMethod = method
            let body: RequestBody = method == "PUT" ? .data(Data("content".utf8)) : .none
            let response = try await transport.send(request, body: body, context: CallContext())
            #expect(response.status.rawValue == status)
            #expect(try await response.body.data() == Data("moved".utf8))
            #expect(server.requests.count == 1)
        }

        @Test(
            "The pipeline follows redirects, including those that the client would follow itself",
            arguments: [303, 302]
        )
        func followed(_ status: Int) async throws {
            let server = try server()
            let recorder = EventRecorder()
            var configuration = PipelineConfiguration()
            configuration.observers = [recorder]
            let client = HTTPClient.shared.holdfast(cache: .inMemory(), configuration: configuration)
            for count in 1...2 {
                var request = HTTPClientRequest(url: server.url("/\(status)").absoluteString)
                request.method = .POST
                let response = try await client.respond(to: request)
                #expect(response.status == 200)
                #expect(response.url == server.url("/there"))
                #expect(try await response.body.data() == Data("there".utf8))
                #expect(server.requests.filter { $0.method == "POST" }.count == count)
            }
            #expect(recorder.events.filter { $0.name == .redirected }.count == 2)
            #expect(recorder.events.allSatisfy { $0.name != AsyncHTTPClientTransport.clientFollowedRedirect })
        }

        @Test(
            "Redirects followed by a client with an unknown configuration are reported, and no cache stores the result"
        )
        func followedUnread() async throws {
            let server = try server()
            let recorder = EventRecorder()
            var configuration = PipelineConfiguration()
            configuration.observers = [recorder]
            let transport = AsyncHTTPClientTransport(unread: .shared)
            let pipeline = Pipeline(transport: transport, cache: .inMemory(), configuration: configuration)
            for count in 1...2 {
                let response = try await pipeline.send(URLRequest(url: server.url("/303")))
                #expect(response.url == server.url("/there"))
                #expect(try await response.body.data() == Data("there".utf8))
                #expect(server.requests.count == 2 * count)
            }
            let told = recorder.events.filter { $0.name == AsyncHTTPClientTransport.clientFollowedRedirect }
            #expect(told.count == 2)
        }

        @Test(
            "A redirect to a port above 65535 does not crash the process, whatever the status and the client",
            arguments: [301, 302, 303],
            ["GET", "POST"]
        )
        func trappingPort(_ status: Int, _ method: String) async throws {
            let server = try LoopbackServer.start { _ in
                LoopbackReply(status, fields: [("Location", "http://127.0.0.1:65536/")])
            }
            var following = HTTPClient.Configuration()
            following.redirectConfiguration = .follow(max: 5, allowCycles: true)
            let theirs = HTTPClient(configuration: following)
            for client in [HTTPClient.shared, theirs] {
                let pipeline = Pipeline(transport: AsyncHTTPClientTransport(client: client))
                var request = URLRequest(url: server.url("/"))
                request.httpMethod = method
                let response = try await pipeline.send(request)
                #expect(response.status.rawValue == status)
            }
            try await theirs.shutdown()
        }

        @Test("A redirect with content to a URL that fills a connection's buffer fails and does not crash the process")
        func longLocation() async throws {
            let server = try LoopbackServer.start { _ in
                LoopbackReply(307, fields: [("Location", "/" + String(repeating: "a", count: 70_000))])
            }
            let pipeline = Pipeline(transport: AsyncHTTPClientTransport())
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "POST"
            let error = try await #require(throws: ServiceError.self) {
                try await pipeline.send(request, body: .data(Data("content".utf8)))
            }
            #expect(error.code == .badRequest)
            #expect(server.requests.count == 1)
            // Without content it is the server's to judge.
            var long = URLRequest(url: server.url("/" + String(repeating: "b", count: 70_000)))
            long.httpMethod = "GET"
            _ = try? await pipeline.send(long)
        }

        @Test(
            "A redirect to an invalid port is returned, and such a URL is never requested",
            arguments: [0, 65_536, 99_999]
        )
        func badPort(_ port: Int) async throws {
            let server = try LoopbackServer.start { _ in
                LoopbackReply(302, fields: [("Location", "http://127.0.0.1:\(port)/")])
            }
            let pipeline = Pipeline(transport: AsyncHTTPClientTransport(client: .shared))
            if port > 0 {
                let response = try await pipeline.send(URLRequest(url: server.url("/")))
                #expect(response.status == 302)
            }
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/"))
            let error = try await #require(throws: ServiceError.self) { try await pipeline.send(URLRequest(url: url)) }
            #expect(error.code == .badRequest)
            #expect(error.progress == .notSent)
        }

        @Test("The pipeline follows redirects and stores the final response")
        func byPipeline() async throws {
            let server = try server()
            let client = HTTPClient.shared.holdfast(cache: .inMemory())
            for _ in 1...2 {
                let response = try await client.respond(to: HTTPClientRequest(url: server.url("/302").absoluteString))
                #expect(try await response.body.data() == Data("there".utf8))
                #expect(response.url == server.url("/there"))
            }
            #expect(server.requests.map(\.path) == ["/302", "/there", "/302"])
        }
    }
#endif
