// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HTTPTypes
import Holdfast
import HoldfastHTTPTypes

struct PipelineBridge: Sendable {
    let pipeline: Pipeline

    func send<Chunks: AsyncSequence & Sendable>(
        _ request: HTTPRequest,
        content: Chunks,
        baseURL: URL,
        operation: String
    ) async throws -> (HTTPResponse, ResponseBody.Slices) where Chunks.Element == [UInt8] {
        var options = CallOptions()
        options.operationName = operation
        let (head, body) = try await pipeline.send(
            request,
            body: .sequence(content),
            baseURL: baseURL,
            options: options
        )
        return (head, body.slices)
    }
}

func makeBridge() -> PipelineBridge {
    PipelineBridge(
        pipeline: Pipeline(transport: URLSessionTransport(), cache: .default, retrierFactory: .default)
    )
}
