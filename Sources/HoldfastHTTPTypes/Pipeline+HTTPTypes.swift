// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    public import Foundation
    public import HTTPTypes
    public import Holdfast

    #if canImport(FoundationNetworking)
        // Foundation on Linux keeps URLRequest in a module of its own.
        internal import FoundationNetworking
    #endif

    extension Pipeline {
        /// Sends a request and returns at its response head.
        ///
        /// - Parameters:
        ///   - request: what to send.
        ///   - body: the content; none by default.
        ///   - baseURL: where the server's API lies, for requests that name their path alone; see
        ///     `URLRequest.init(_:baseURL:)`.
        ///   - options: what else the caller asks for this call.
        /// - Returns: the head, whatever its status, and the body, which is read as it comes; dropping it ends the transfer.
        /// - Throws: `ServiceError`, `CancellationError` promptly after cancellation, or what a hook or the transport threw.
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

        /// Loads a request and its whole body, as `URLSession.data(for:)` of HTTPTypesFoundation does.
        ///
        /// Any status is a success. The body is held in memory whole.
        public func data(
            for request: HTTPRequest,
            options: CallOptions = CallOptions()
        ) async throws -> (Data, HTTPResponse) {
            try await load(request, .none, options)
        }

        /// Sends a request with content, and loads the whole body of its response; as `data(for:)` otherwise.
        public func upload(
            for request: HTTPRequest,
            from bodyData: Data,
            options: CallOptions = CallOptions()
        ) async throws -> (Data, HTTPResponse) {
            try await load(request, .data(bodyData), options)
        }

        /// Sends a request with the content of a file, read anew by each attempt; as `data(for:)` otherwise.
        public func upload(
            for request: HTTPRequest,
            fromFile fileURL: URL,
            options: CallOptions = CallOptions()
        ) async throws -> (Data, HTTPResponse) {
            try await load(request, .file(fileURL), options)
        }

        private func load(
            _ request: HTTPRequest,
            _ content: RequestBody,
            _ options: CallOptions
        ) async throws -> (Data, HTTPResponse) {
            let (head, body) = try await send(request, body: content, options: options)
            return (try await body.data(), head)
        }
    }
#endif
