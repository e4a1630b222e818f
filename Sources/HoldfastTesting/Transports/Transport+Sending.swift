// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
package import Holdfast

#if canImport(FoundationNetworking)
    private import FoundationNetworking
#endif

extension Transport {
    /// Sends without a pipeline.
    package func send(
        _ url: URL,
        _ method: String = "GET",
        fields: [String: String] = [:],
        body: RequestBody = .none,
        context: CallContext = CallContext()
    ) async throws -> Response {
        var request = URLRequest(url: url)
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return try await send(request, body: body, context: context)
    }
}

extension Response {
    /// The whole body as text.
    package func text() async throws -> String {
        String(decoding: try await body.collect(), as: UTF8.self)
    }
}
