// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastRedis

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
