// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    import Foundation
    import HTTPTypes
    import Holdfast
    import HoldfastHTTPTypes
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// The code of `HoldfastHTTPTypes.docc`: article, and the steps from first to last.
    @Suite("Catalog: HoldfastHTTPTypes", .timeLimit(.minutes(20)))
    struct HoldfastHTTPTypesCatalogTests {
        private enum Head {
            struct PipelineBridge: Sendable {
                let pipeline: Pipeline

                func send(
                    _ request: HTTPRequest,
                    baseURL: URL,
                    operation: String
                ) async throws -> (HTTPResponse, ResponseBody) {
                    var options = CallOptions()
                    options.operationName = operation
                    return try await pipeline.send(request, baseURL: baseURL, options: options)
                }
            }
        }

        struct PipelineBridge: Sendable {
            let pipeline: Pipeline

            func send<Chunks: AsyncSequence & Sendable>(
                _ request: HTTPRequest,
                content: Chunks,
                baseURL: URL,
                operation: String
            ) async throws -> (HTTPResponse, ResponseBody.Slices) where Chunks.Element == [UInt8] {
                var options = CallOptions()
                options.operationName = operation
                let (head, body) = try await pipeline.send(
                    request,
                    body: .sequence(content),
                    baseURL: baseURL,
                    options: options
                )
                return (head, body.slices)
            }
        }

        func makeBridge() -> PipelineBridge {
            PipelineBridge(
                pipeline: Pipeline(transport: URLSessionTransport(), cache: .default, retrierFactory: .default)
            )
        }

        @Test("Calls and conversions")
        func calls() async throws {
            let transport = ScriptedTransport([.respond(body: "21 °C"), .respond(body: "streamed"), .respond(201)])
            let pipeline = Pipeline(transport: transport)
            var received = 0
            let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example.com", path: "/weather")
            let (data, response) = try await pipeline.data(for: request)
            #expect(data == Data("21 °C".utf8))
            #expect(response.status == .ok)
            let (head, body) = try await pipeline.send(request)
            for try await slice in body.slices { received += slice.count }
            #expect(received == 8)
            #expect(head.status == .ok)
            let baseURL = try #require(URL(string: "https://api.example.com/v1"))
            let upload = HTTPRequest(method: .put, scheme: nil, authority: nil, path: "/lines")
            let lines = AsyncStream<[UInt8]> { continuation in
                continuation.yield(Array("one".utf8))
                continuation.finish()
            }
            let content = RequestBody.sequence(lines, isReplayable: true)
            let (receipt, _) = try await pipeline.send(upload, body: content, baseURL: baseURL)
            #expect(receipt.status == .created)
            #expect(transport.sent.last?.body?.array == Array("one".utf8))
            let urlRequest = try URLRequest(request)
            let again = try HTTPRequest(urlRequest)
            let fields = HeaderFields(request.headerFields)
            #expect(again.path == "/weather")
            #expect(fields.isEmpty)
        }

        @Test("A bridge for generated clients")
        func bridge() async throws {
            let transport = ScriptedTransport([.respond(body: "hello"), .respond(body: "hello")])
            let pipeline = Pipeline(transport: transport)
            let baseURL = try #require(URL(string: "https://api.example.com/v1"))
            let request = HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/greetings")
            let (head, _) = try await Head.PipelineBridge(pipeline: pipeline)
                .send(request, baseURL: baseURL, operation: "greet")
            #expect(head.status == .ok)
            let content = AsyncStream<[UInt8]> { $0.finish() }
            var received: [UInt8] = []
            let (_, body) = try await PipelineBridge(pipeline: pipeline)
                .send(request, content: content, baseURL: baseURL, operation: "greet")
            for try await slice in body { received += slice }
            #expect(received == Array("hello".utf8))
            #expect(transport.sent.last?.request.url?.path == "/v1/greetings")
            #expect(makeBridge().pipeline.cache != nil)
        }
    }
#endif
