// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastProxy

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
