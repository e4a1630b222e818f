// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import Holdfast
    import HoldfastRedis
    import HoldfastTesting
    import Testing

    /// The code of `HoldfastRedis.docc`: article, and the steps from first to last. Nothing here needs a server: a store is there whether it is or not.
    @Suite("Catalog: HoldfastRedis", .timeLimit(.minutes(20)))
    struct HoldfastRedisCatalogTests {
        private struct First {
            func openStore(at address: String) async throws -> RedisStore {
                try await RedisStore.connect(address)
            }

            func makeCache(over store: RedisStore) -> HTTPCache {
                HTTPCache(store: store, options: .shared)
            }
        }

        func openStore(at address: String) async throws -> RedisStore {
            var options = RedisOptions()
            options.capacity = 512 << 20
            options.memory = 32 << 20
            options.prefix = "shop"
            return try await RedisStore.connect(address, options: options)
        }

        func makeCache(over store: RedisStore) -> HTTPCache {
            HTTPCache(store: store, options: .shared)
        }

        func health(of store: RedisStore) -> String {
            let status = store.status
            return status.isReachable ? "shared, lost \(status.losses) times" : "alone until the server is back"
        }

        @Test("Connecting, bounds, status")
        func store() async throws {
            let store = try await RedisStore.connect("redis://127.0.0.1:6379")
            let cache = HTTPCache(store: store, options: .shared)
            var options = RedisOptions()
            options.capacity = 512 << 20
            options.memory = 32 << 20
            options.prefix = "shop"
            options.commandTimeout = .milliseconds(200)
            let status = store.status
            print(status.isReachable, status.hearsChanges, status.losses, status.lastError ?? "no error")
            #expect(options.prefix == "shop")
            #expect(cache.options == .shared)
            await cache.close()
        }

        @Test("A shared store without a server")
        func tutorial() async throws {
            let plain = try await First().openStore(at: "redis://127.0.0.1:1")
            #expect(First().makeCache(over: plain).options == .shared)
            await plain.close()
            let store = try await openStore(at: "redis://127.0.0.1:1")
            let cache = makeCache(over: store)
            let client = Pipeline(transport: ScriptedTransport([.respond(body: "hello")]), cache: cache)
            let url = try #require(URL(string: "http://origin.example/a"))
            #expect(try await client.data(from: url).0 == Data("hello".utf8))
            #expect(health(of: store) == "alone until the server is back")
            await client.drain()
            await cache.close()
        }
    }
#endif
