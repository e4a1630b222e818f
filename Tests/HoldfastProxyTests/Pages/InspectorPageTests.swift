// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    @Suite("The page on the inspector", .timeLimit(.minutes(20)))
    struct InspectorPageTests {
        @Test("An inspector for your own pipeline")
        func ownPipeline() async throws {
            let cache = HTTPCache.default
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"], body: "hello")])
            let retries: any RetrierFactory = .default
            var configuration = PipelineConfiguration()

            let model = InspectorModel(cache: cache)
            configuration.observers.append(model)
            let pipeline = Pipeline(
                transport: transport,
                cache: cache,
                retrierFactory: retries,
                configuration: configuration
            )
            let inspector = Inspector(model: model, governor: retries.governor)
            let port = try await inspector.start(port: 0)
            print("http://127.0.0.1:\(port)/")

            let url = try #require(URL(string: "http://origin.example/a"))
            _ = try await pipeline.send(URLRequest(url: url)).body.collect()
            var question = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)/api/calls")))
            question.timeoutInterval = 900
            let session = URLSession(configuration: .ephemeral)
            let (answer, _) = try await session.data(for: question)
            session.finishTasksAndInvalidate()
            #expect(String(decoding: answer, as: UTF8.self).contains("http://origin.example/a"))
            await inspector.stop()
        }
    }
#endif
