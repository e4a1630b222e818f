// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastProxy

func startFront(of origin: String, cache: HTTPCache) async throws -> ProxyServer {
    var configuration = ProxyConfiguration(.reverse(try ProxyOrigin(origin)))
    configuration.port = 0
    configuration.cache = cache
    return try await ProxyServer.start(configuration)
}
