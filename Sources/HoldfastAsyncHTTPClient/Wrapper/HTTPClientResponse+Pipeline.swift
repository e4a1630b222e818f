// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    internal import NIOHTTP1

    extension HTTPClientResponse {
        /// A pipeline's response as a client's response.
        ///
        /// The history has one entry, with the URL that answered, so that ``HTTPClientResponse/url`` returns it.
        ///
        /// - Parameter version: the origin's, if it was asked; a response from the store counts as HTTP/1.1.
        init(_ response: Response, to request: HTTPClientRequest, version: HTTPVersion?) {
            let version = response.source.isFromStore ? .http1_1 : version ?? .http1_1
            let status = HTTPResponseStatus(statusCode: response.status.rawValue)
            var headers = HTTPHeaders()
            for line in response.fields { headers.add(name: line.name.rawName, value: line.value) }
            var answered = request
            answered.body = nil
            if let url = response.url { answered.url = url.absoluteString }
            let head = HTTPResponseHead(version: version, status: status, headers: headers)
            let body: Body =
                if let bytes = response.body.bytesInMemory {
                    bytes.isEmpty ? Body() : .bytes(bytes.withUnsafeBytes { ByteBuffer(bytes: $0) })
                } else {
                    .stream(ResponseBuffers(body: response.body))
                }
            self.init(
                version: version,
                status: status,
                headers: headers,
                body: body,
                history: [HTTPClientRequestResponse(request: answered, responseHead: head)]
            )
        }
    }

    /// A response body with the client's buffers and errors.
    private struct ResponseBuffers: AsyncSequence, Sendable {
        typealias Element = ByteBuffer

        let body: ResponseBody

        func makeAsyncIterator() -> Iterator {
            Iterator(chunks: body.makeAsyncIterator())
        }

        struct Iterator: AsyncIteratorProtocol {
            var chunks: ResponseBody.Iterator

            mutating func next() async throws -> ByteBuffer? {
                do {
                    return try await chunks.next()?.withUnsafeBytes { ByteBuffer(bytes: $0) }
                } catch let error as ServiceError {
                    throw ClientErrors.clientError(of: error)
                }
            }
        }
    }
#endif
