// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Foundation
    public import HTTPTypes
    public import Holdfast

    #if canImport(FoundationNetworking)
        // On Linux, Foundation has URLRequest in a separate module.
        internal import FoundationNetworking
    #endif

    extension Pipeline {
        /// Sends a request and returns when the head of the response arrives.
        ///
        /// - Parameters:
        ///   - request: the request to send.
        ///   - body: the content; none by default.
        ///   - baseURL: the server's API URL, for requests that only have a path; see `URLRequest.init(_:baseURL:)`.
        ///   - options: other options of this call.
        /// - Returns: the head, whatever its status, and the body, which is read as it arrives; releasing it ends the transfer.
        /// - Throws: `ServiceError`, `CancellationError` promptly after cancellation, or an error of a hook or the transport.
        public func send(
            _ request: HTTPRequest,
            body: RequestBody = .none,
            baseURL: URL? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> (HTTPResponse, ResponseBody) {
            let response = try await send(URLRequest(request, baseURL: baseURL), body: body, options: options)
            do throws(ServiceError) {
                return (try HTTPResponse(response), response.body)
            } catch {
                response.body.discard()
                throw error
            }
        }

        /// Loads a request and its whole body, like `URLSession.data(for:)` of HTTPTypesFoundation.
        ///
        /// Any status is a success. The whole body is held in memory.
        public func data(
            for request: HTTPRequest,
            options: CallOptions = CallOptions()
        ) async throws -> (Data, HTTPResponse) {
            try await load(request, content: .none, options: options)
        }

        /// Sends a request with content, and loads the whole body of its response; otherwise like `data(for:)`.
        public func upload(
            for request: HTTPRequest,
            from bodyData: Data,
            options: CallOptions = CallOptions()
        ) async throws -> (Data, HTTPResponse) {
            try await load(request, content: .data(bodyData), options: options)
        }

        /// Sends a request with the content of a file, which each attempt reads again; otherwise like `data(for:)`.
        public func upload(
            for request: HTTPRequest,
            fromFile fileURL: URL,
            options: CallOptions = CallOptions()
        ) async throws -> (Data, HTTPResponse) {
            try await load(request, content: .file(fileURL), options: options)
        }

        private func load(
            _ request: HTTPRequest,
            content: RequestBody,
            options: CallOptions
        ) async throws -> (Data, HTTPResponse) {
            try await load(URLRequest(request), body: content, options: options) { try HTTPResponse($0) }
        }
    }
#endif
