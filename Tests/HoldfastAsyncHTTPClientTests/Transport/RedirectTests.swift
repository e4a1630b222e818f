// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import AsyncHTTPClient
    import Foundation
    import Holdfast
    import HoldfastAsyncHTTPClient
    import HoldfastTesting
    import NIOHTTP1
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("Redirects beneath a client that follows them itself", .timeLimit(.minutes(20)))
    struct RedirectTests {
        private func server() throws -> LoopbackServer {
            try LoopbackServer.start { request in
                guard let status = Int(request.path.dropFirst()) else {
                    return LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "there")
                }
                return LoopbackReply(status, fields: [("Location", "/there")], body: "moved")
            }
        }

        @Test("are handed up all the same", arguments: [301, 302, 307, 308], ["GET", "PUT"])
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

        @Test("that it follows nevertheless are told of, and stored by no cache", arguments: [303, 302])
        func followed(_ status: Int) async throws {
            let server = try server()
            let recorder = EventRecorder()
            var configuration = PipelineConfiguration()
            configuration.observers = [recorder]
            let client = HTTPClient.shared.holdfast(cache: .default, configuration: configuration)
            let isPost = status == 302
            for count in 1...2 {
                var request = HTTPClientRequest(url: server.url("/\(status)").absoluteString)
                if isPost { request.method = .POST }
                let response = try await client.respond(to: request)
                #expect(response.status == 200)
                #expect(response.url == server.url("/there"))
                #expect(try await response.body.data() == Data("there".utf8))
                #expect(server.requests.count == 2 * count)
            }
            let told = recorder.events.filter { $0.name == AsyncHTTPClientTransport.clientFollowedRedirect }
            #expect(told.count == 2)
        }

        @Test("to a port that is none are handed up, and such a URL is never sent", arguments: [0, 65_536, 99_999])
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

        @Test("are followed by the pipeline, which stores what it gets at the end")
        func byPipeline() async throws {
            let server = try server()
            let client = HTTPClient.shared.holdfast(cache: .default)
            for _ in 1...2 {
                let response = try await client.respond(to: HTTPClientRequest(url: server.url("/302").absoluteString))
                #expect(try await response.body.data() == Data("there".utf8))
                #expect(response.url == server.url("/there"))
            }
            #expect(server.requests.map(\.path) == ["/302", "/there", "/302"])
        }
    }
#endif
