// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastRedis

func openStore(at address: String) async throws -> RedisStore {
    try await RedisStore.connect(address)
}

func makeCache(over store: RedisStore) -> HTTPCache {
    HTTPCache(store: store, options: .shared)
}
