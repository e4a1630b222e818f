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
        let (data, response) = try await client.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return data
    }
}
