// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// A pipeline over a script with an inspector's model, and the desk that answers for it.
    struct InspectorBench {
        static let port = 9090
        static let word = String(repeating: "a1", count: 32)

        let clock = ManualClock(autoAdvances: true)
        let cache: HTTPCache
        let model: InspectorModel
        let pipeline: Pipeline
        let desk: InspectorResponder

        /// - Parameter answer: by default a response that is fresh for a minute, with the path as its body.
        init(
            store: any CacheStore = MemoryStore(capacity: 8 << 20),
            options: CacheOptions = CacheOptions(),
            transport: (any Transport)? = nil,
            retrierFactory: any RetrierFactory = .never,
            answering answer: @escaping @Sendable (URLRequest) async throws -> ScriptedTransport.Step = { request in
                .respond(200, ["Cache-Control": "max-age=60", "ETag": "\"v\""], body: request.url?.path ?? "")
            }
        ) {
            cache = HTTPCache(store: store, options: options)
            model = InspectorModel(cache: cache, clock: clock)
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            configuration.attemptTimeout = nil
            configuration.observers = [model]
            pipeline = Pipeline(
                transport: transport ?? ScriptedTransport(answering: answer),
                cache: cache,
                retrierFactory: retrierFactory,
                configuration: configuration
            )
            desk = InspectorResponder(
                model: model,
                governor: retrierFactory.governor,
                guarding: InspectorGuard(port: Self.port, word: Self.word)
            )
        }

        /// Makes a call and reads its body.
        @discardableResult
        func load(_ url: String, _ fields: [String: String] = [:], tags: Set<String> = []) async throws -> Response {
            var request = URLRequest(url: try #require(URL(string: url)))
            for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
            var options = CallOptions()
            options.tags = tags
            let response = try await pipeline.send(request, options: options)
            _ = try await response.body.collect()
            return response
        }

        /// Asks the desk as the page does.
        func ask(_ target: String) async throws -> Any {
            let response = await desk.answer(.page(.get, target))
            let body = try await response.body.collect()
            try #require(response.status == 200, "\(String(decoding: body, as: UTF8.self))")
            return try JSONSerialization.jsonObject(with: Data(body))
        }

        /// Asks for an object.
        func object(_ target: String) async throws -> [String: Any] {
            try #require(try await ask(target) as? [String: Any])
        }

        /// The entries of a page of the list.
        func entries(_ query: String = "") async throws -> [[String: Any]] {
            try #require(try await object("/api/entries" + query)["entries"] as? [[String: Any]])
        }

        /// Orders a purge as the page does.
        func purge(_ order: String) async throws -> (status: Int, text: String) {
            let response = await desk.answer(.order(order))
            return (response.status.rawValue, String(decoding: try await response.body.collect(), as: UTF8.self))
        }
    }

    extension InspectorRequest {
        /// A question of the page's own.
        static func page(
            _ method: RequestMethod,
            _ target: String,
            _ fields: HeaderFields = [:],
            body: RequestBody = .none,
            from address: String? = "127.0.0.1"
        ) -> InspectorRequest {
            let own: HeaderFields = ["Host": "127.0.0.1:9090", "Sec-Fetch-Site": "same-origin"]
            return InspectorRequest(
                method: method,
                target: target,
                fields: own.merging(fields),
                body: body,
                remoteAddress: address
            )
        }

        /// An order of the page's own.
        static func order(_ text: String, _ fields: HeaderFields = [:]) -> InspectorRequest {
            let own: HeaderFields = [
                "Origin": "http://127.0.0.1:9090", "Content-Type": "application/json",
                "X-Holdfast-Inspector": InspectorBench.word,
            ]
            return .page(.post, "/api/purge", own.merging(fields), body: .bytes(ByteChunk(copying: text.utf8)))
        }
    }

    extension HeaderFields {
        /// These fields and one more, whose name is no literal.
        func with(_ name: String, _ value: String) -> HeaderFields {
            var fields = self
            fields.append(rawName: name, value: value)
            return fields
        }
    }
#endif
