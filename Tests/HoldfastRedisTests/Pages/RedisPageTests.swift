// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Holdfast
    import HoldfastRedis
    import Testing

    @Suite("docs/operating/redis.md", .timeLimit(.minutes(20)))
    struct RedisPageTests {
        @Test("The page's store works with and without the server")
        func opens() async throws {
            let store = try await RedisStore.connect("redis://127.0.0.1:6379")
            let cache = HTTPCache(store: store)
            #expect(cache.store.statistics.entryCount >= 0)
            await cache.close()
        }
    }
#endif
