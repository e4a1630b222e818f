// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastProxy
    import HoldfastTesting
    import Synchronization
    import Testing

    /// The code of `HoldfastProxy.docc`: article, and the steps from first to last.
    @Suite("Catalog: HoldfastProxy", .timeLimit(.minutes(20)))
    struct HoldfastProxyCatalogTests {
        private struct First {
            func startFront(of origin: String, cache: HTTPCache) async throws -> ProxyServer {
                var configuration = ProxyConfiguration(.reverse(try ProxyOrigin(origin)))
                configuration.port = 0
                configuration.cache = cache
                return try await ProxyServer.start(configuration)
            }
        }

        func startFront(of origin: String, cache: HTTPCache, model: InspectorModel) async throws -> ProxyServer {
            var configuration = ProxyConfiguration(.reverse(try ProxyOrigin(origin)))
            configuration.port = 0
            configuration.cache = cache
            configuration.observers = [model]
            return try await ProxyServer.start(configuration)
        }

        func openInspector(on model: InspectorModel) async throws -> Inspector {
            let inspector = Inspector(model: model)
            print("look at http://127.0.0.1:\(try await inspector.start(port: 0))/")
            return inspector
        }

        func end(_ server: ProxyServer, _ inspector: Inspector, cache: HTTPCache) async {
            await server.drain(within: .seconds(10))
            await inspector.stop()
            await cache.close()
        }

        private func origin() throws -> LoopbackServer {
            try LoopbackServer.start { _ in LoopbackReply(fields: [("Cache-Control", "max-age=60")], body: "hello") }
        }

        @Test("A proxy in a program")
        func embedded() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let originURL = "http://127.0.0.1:\(origin.port)"
            var configuration = ProxyConfiguration(.reverse(try ProxyOrigin(originURL)))
            configuration.port = 0
            configuration.cache = .inMemory(capacity: 64 << 20, options: .shared)
            let server = try await ProxyServer.start(configuration)
            print("listening on http://127.0.0.1:\(server.port)")
            #expect(try await ProbeClient(port: server.port).ask("/").text == "hello")
            await server.drain(within: .seconds(10))
            await configuration.cache?.close()
        }

        @Test("Records, and a forward proxy")
        func settings() throws {
            let lines = Mutex<[String]>([])
            let log: @Sendable (String) -> Void = { line in lines.withLock { $0.append(line) } }
            var configuration = ProxyConfiguration(.forward())
            configuration.onAnswer = { record in
                log("\(record.target ?? "-") \(record.status) \(record.source)")
            }
            #expect(configuration.onAnswer != nil)
            var rules = ForwardRules()
            rules.allowedHosts = ["api.example.com"]
            let forward = ProxyConfiguration(.forward(rules))
            try forward.validate()
            #expect(forward.role == .forward(rules))
        }

        @Test("In front of a server")
        func tutorial() async throws {
            let origin = try origin()
            defer { origin.stop() }
            let cache = HTTPCache.inMemory(options: .shared)
            let originURL = "http://127.0.0.1:\(origin.port)"
            let first = try await First().startFront(of: originURL, cache: cache)
            #expect(try await ProbeClient(port: first.port).ask("/").text == "hello")
            await first.close()
            let model = InspectorModel(cache: cache)
            let server = try await startFront(of: originURL, cache: cache, model: model)
            let inspector = try await openInspector(on: model)
            #expect(try await ProbeClient(port: server.port).ask("/").text == "hello")
            await end(server, inspector, cache: cache)
            #expect(inspector.port == nil)
        }
    }
#endif
