// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    public import AsyncHTTPClient
    internal import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    public import Logging
    public import NIOCore

    /// A pipeline with the call shape of AsyncHTTPClient: call sites of an `HTTPClient` change one identifier.
    ///
    /// ```swift
    /// let client = HTTPClient.shared.holdfast(cache: .default, retrierFactory: .default)
    /// let response = try await client.execute(HTTPClientRequest(url: "https://example.com/"), timeout: .minutes(5))
    /// ```
    ///
    /// A value: copies share the pipeline, and may be used from any number of tasks. ``execute(_:deadline:logger:options:)``
    /// speaks the client's language in responses and errors; ``respond(to:timeout:logger:options:)`` gives the pipeline's
    /// own `Response`, which tells where it came from.
    public struct HoldfastHTTPClient: Sendable {
        /// What answers the calls.
        public let pipeline: Pipeline

        /// A client over `pipeline`, whose transport should be an ``AsyncHTTPClientTransport``.
        ///
        /// With another transport everything works but what such a transport does not know: a request's `tlsConfiguration`
        /// and `localAddress` are refused, and its logger is not used.
        public init(_ pipeline: Pipeline) {
            self.pipeline = pipeline
        }

        /// Sends a request and returns at the head of its response, from the cache or from the network.
        ///
        /// Any status is a success. The request's content is sent again by a retry where it is in memory (`.bytes`); a
        /// `.stream` is sent once, unless the retry rules keep its beginning. A request with a TLS configuration of its own goes
        /// past the cache, unless `options.principal` says whose responses it may use.
        ///
        /// - Parameters:
        ///   - request: what to send; repeated header lines are joined to one (RFC 9110 §5.3).
        ///   - deadline: by when the response head must be there, all attempts and waits included.
        ///   - logger: is given to the client for each attempt.
        ///   - options: what else is asked of the pipeline; its `timeout` holds where it is the shorter one.
        /// - Throws: what the client threw in the last attempt where it did (`HTTPClientError` and the errors beneath it),
        ///   `HTTPClientError.deadlineExceeded` when the time is up, `HTTPClientError.redirectLimitReached`, `CancellationError`,
        ///   and `ServiceError` for all that the client has no word for.
        public func execute(
            _ request: HTTPClientRequest,
            deadline: NIODeadline,
            logger: Logger? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> HTTPClientResponse {
            let left: TimeAmount? = deadline == .distantFuture ? nil : deadline - .now()
            return try await execute(request, left, logger, options)
        }

        /// Sends a request; as ``execute(_:deadline:logger:options:)`` with a deadline so far from now.
        public func execute(
            _ request: HTTPClientRequest,
            timeout: TimeAmount,
            logger: Logger? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> HTTPClientResponse {
            try await execute(request, timeout, logger, options)
        }

        /// Sends a request and returns the pipeline's own response: its source, the cache's decision, every attempt.
        ///
        /// - Parameters:
        ///   - request: the request in that client's own shape.
        ///   - timeout: until the response head; nil, the default: that of `options`, or of the pipeline.
        ///   - logger: given to the client for each attempt; nil, the default: none.
        ///   - options: what this call asks of cache and retries.
        /// - Throws: `ServiceError`, or `CancellationError`; nothing is translated.
        public func respond(
            to request: HTTPClientRequest,
            timeout: TimeAmount? = nil,
            logger: Logger? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> Response {
            try await respond(to: request, timeout, ClientCall(request, logger: logger), options)
        }

        private func execute(
            _ request: HTTPClientRequest,
            _ timeout: TimeAmount?,
            _ logger: Logger?,
            _ options: CallOptions
        ) async throws -> HTTPClientResponse {
            do {
                let call = ClientCall(request, logger: logger)
                let response = try await respond(to: request, timeout, call, options)
                return HTTPClientResponse(response, to: request, version: call.version)
            } catch let error as ServiceError {
                throw ClientErrors.clientError(of: error)
            }
        }

        private func respond(
            to request: HTTPClientRequest,
            _ timeout: TimeAmount?,
            _ call: ClientCall,
            _ options: CallOptions
        ) async throws -> Response {
            var options = options
            if let timeout {
                let allowed = Duration.nanoseconds(max(timeout.nanoseconds, 0))
                options.timeout = options.timeout.map { min($0, allowed) } ?? allowed
            }
            if request.tlsConfiguration != nil || request.localAddress != nil {
                guard pipeline.endsInAsyncHTTPClient else {
                    throw ServiceError(
                        .unsupported,
                        "The request has a `tlsConfiguration` or `localAddress`, which only a pipeline whose transport is an "
                            + "AsyncHTTPClientTransport keeps; use one, or leave them out.",
                        progress: .notSent
                    )
                }
            }
            if request.tlsConfiguration != nil, options.principal == nil {
                // A client certificate is a credential that no cache sees.
                options.cache.noStore = true
            }
            let (outgoing, body) = try request.forPipeline()
            options.transportDetails = call
            return try await pipeline.send(outgoing, body: body, options: options)
        }
    }

    extension Pipeline {
        /// Whether what a request of the client has beside its fields reaches the network.
        fileprivate var endsInAsyncHTTPClient: Bool {
            transport is AsyncHTTPClientTransport || (transport as? Pipeline)?.endsInAsyncHTTPClient ?? false
        }
    }
#endif
