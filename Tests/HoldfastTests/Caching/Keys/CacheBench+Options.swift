// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension CacheBench {
    /// A bench whose cache has these options.
    init(
        options: CacheOptions,
        store: any CacheStore = MemoryStore(capacity: 1 << 20),
        _ transport: ScriptedTransport
    ) {
        self.transport = transport
        clock = ManualClock()
        cache = HTTPCache(store: store, options: options)
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.observers = [events]
        pipeline = Pipeline(transport: transport, cache: cache, configuration: configuration)
    }

    /// The body that comes back, and whether it came over the network; each fetched body bears its number.
    func text(_ request: URLRequest, _ options: CallOptions = CallOptions()) async throws -> String {
        try await load(request, options).body
    }
}

extension ScriptedTransport {
    /// An origin that numbers its answers 1, 2, 3 in their bodies.
    static func counting(
        _ status: Int = 200,
        _ fields: @escaping @Sendable (URLRequest) -> HeaderFields = { _ in ["Cache-Control": "max-age=60"] }
    ) -> ScriptedTransport {
        let numbers = AnswerNumbers()
        return ScriptedTransport { request in .respond(status, fields(request), body: String(numbers.next())) }
    }
}

extension URLRequest {
    /// A request with content.
    static func asking(
        _ method: String,
        _ url: String,
        _ content: String,
        _ fields: [String: String] = [:],
        type: String = "application/json"
    ) -> URLRequest {
        var request = request(method, url, fields)
        request.setValue(type, forHTTPHeaderField: "Content-Type")
        request.httpBody = Data(content.utf8)
        return request
    }

    /// A request with content to the usual URL.
    static func asking(_ method: String, _ content: String, type: String = "application/json") -> URLRequest {
        asking(method, "http://origin.example/a", content, type: type)
    }
}
