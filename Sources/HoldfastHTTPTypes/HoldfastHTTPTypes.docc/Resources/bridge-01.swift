// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HTTPTypes
import Holdfast
import HoldfastHTTPTypes

struct PipelineBridge: Sendable {
    let pipeline: Pipeline

    func send(
        _ request: HTTPRequest,
        baseURL: URL,
        operation: String
    ) async throws -> (HTTPResponse, ResponseBody) {
        var options = CallOptions()
        options.operationName = operation
        return try await pipeline.send(request, baseURL: baseURL, options: options)
    }
}
