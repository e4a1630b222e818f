// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    internal import Foundation
    internal import HTTPTypes
    internal import Holdfast
    internal import HoldfastHTTPTypes
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        // On Linux, Foundation has URLSession in a separate module.
        internal import FoundationNetworking
    #endif

    /// A transport over plain URLSession, as generated clients use without Holdfast; content in memory.
    struct SessionTransport: ClientTransport {
        let session: URLSession

        func send(_ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String) async throws
            -> (HTTPResponse, HTTPBody?)
        {
            var urlRequest = try URLRequest(request, baseURL: baseURL)
            urlRequest.httpBody = try await body?.collected()
            let (data, response) = try await session.data(for: urlRequest)
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            let head = try HTTPResponse(ResponseHead(status: StatusCode(status)))
            let (chunks, continuation) = AsyncStream.makeStream(of: ArraySlice<UInt8>.self)
            continuation.yield(ArraySlice(data))
            continuation.finish()
            return (head, HTTPBody(chunks, length: .known(Int64(data.count)), iterationBehavior: .single))
        }
    }
#endif
