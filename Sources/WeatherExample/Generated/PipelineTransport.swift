// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    internal import Foundation
    internal import HTTPTypes
    internal import Holdfast
    internal import HoldfastHTTPTypes

    /// The complete transport that puts a pipeline behind a generated client.
    struct PipelineTransport: ClientTransport {
        let pipeline: Pipeline

        func send(_ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String) async throws
            -> (HTTPResponse, HTTPBody?)
        {
            var content = RequestBody.none
            if let body {
                var length: Int?
                if case .known(let count) = body.length { length = Int(exactly: count) }
                content = .sequence(body, length: length, isReplayable: body.iterationBehavior == .multiple)
            }
            var options = CallOptions()
            options.operationName = operationID
            let (head, received) = try await pipeline.send(request, body: content, baseURL: baseURL, options: options)
            let length = received.length.map { HTTPBody.Length.known(Int64($0)) } ?? .unknown
            return (head, HTTPBody(received.slices, length: length, iterationBehavior: .single))
        }
    }
#endif
