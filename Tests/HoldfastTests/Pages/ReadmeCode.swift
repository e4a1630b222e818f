// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking  // Linux: where URLRequest is
#endif

/// The code of README.md on wrapping a client, in a file with no imports but those that it shows.
func loadAsInReadme(_ request: URLRequest, at directory: URL) async throws -> (Data, URLResponse, CacheStatistics) {
    let cache = try await HTTPCache.onDisk(at: directory, capacity: 64 << 20)
    let client = Pipeline(transport: URLSessionTransport(), cache: cache, retrierFactory: .backoff())

    let (data, response) = try await client.data(for: request)  // was: URLSession.shared.data(for: request)

    print(cache.statistics.hitRatio, cache.statistics.bytesFromStore)
    await client.drain()
    await cache.close()
    return (data, response, cache.statistics)
}
