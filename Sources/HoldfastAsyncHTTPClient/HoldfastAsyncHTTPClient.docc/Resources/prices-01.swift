// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import AsyncHTTPClient
import Holdfast
import HoldfastAsyncHTTPClient
import NIOCore

struct Prices: Sendable {
    let client = HTTPClient.shared.holdfast(cache: .default, retrierFactory: .default)

    func load(_ url: String) async throws -> ByteBuffer {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
        return try await response.body.collect(upTo: 1 << 20)
    }
}
