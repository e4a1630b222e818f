// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Forecasts {
    let cache = HTTPCache.inMemory(capacity: 16 << 20)
    let client: Pipeline

    init() {
        client = Pipeline(transport: URLSessionTransport(), cache: cache)
    }

    func load(_ url: URL) async throws -> Data {
        let response = try await client.send(URLRequest(url: url))
        guard response.status == .ok else { throw URLError(.badServerResponse) }
        print(response.source, response.cacheDecision?.description ?? "")
        return try await response.body.data(upTo: 1 << 20)
    }
}
