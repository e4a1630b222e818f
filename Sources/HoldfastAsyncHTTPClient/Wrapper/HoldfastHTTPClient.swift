// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    public import AsyncHTTPClient
    internal import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    public import Logging
    public import NIOCore
    internal import NIOHTTP1
    internal import NIOSSL
    private import Synchronization

    /// A pipeline with the methods of AsyncHTTPClient: call sites of an `HTTPClient` change one identifier.
    ///
    /// ```swift
    /// let client = HTTPClient.shared.holdfast(cache: .default, retrierFactory: .default)
    /// let response = try await client.execute(HTTPClientRequest(url: "https://example.com/"), timeout: .minutes(5))
    /// ```
    ///
    /// Copies share the pipeline, and may be used from any number of tasks. ``execute(_:deadline:logger:options:)`` uses the
    /// client's responses and errors; ``respond(to:timeout:logger:options:)`` returns the pipeline's own `Response`, which says
    /// where it came from.
    public struct HoldfastHTTPClient: Sendable {
        /// The pipeline that answers the calls.
        public let pipeline: Pipeline

        /// Creates a client over `pipeline`, whose transport should be an ``AsyncHTTPClientTransport``.
        ///
        /// With another transport everything works except what it does not support: a request's `tlsConfiguration` and
        /// `localAddress` are rejected, and its logger is not used.
        public init(_ pipeline: Pipeline) {
            self.pipeline = pipeline
        }

        /// Sends a request and returns when the head of its response arrives, from the cache or the network.
        ///
        /// Any status is a success. A retry sends the content again if it is in memory (`.bytes`); a `.stream` is sent once,
        /// unless the retry rules keep its beginning. A request with its own TLS configuration bypasses the cache, unless
        /// `options.principal` says whose responses it may use.
        ///
        /// - Parameters:
        ///   - request: the request to send; repeated header lines are joined to one (RFC 9110 §5.3).
        ///   - deadline: when the response head must have arrived, all attempts and waits included.
        ///   - logger: passed to the client for each attempt.
        ///   - options: other options for the pipeline; its `timeout` applies if it is shorter.
        /// - Throws: the client's error of the last attempt (`HTTPClientError` and the errors below it),
        ///   `HTTPClientError.deadlineExceeded` when the time is up, `HTTPClientError.redirectLimitReached`,
        ///   `CancellationError`, and `ServiceError` for everything that the client has no error for.
        public func execute(
            _ request: HTTPClientRequest,
            deadline: NIODeadline,
            logger: Logger? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> HTTPClientResponse {
            let left: TimeAmount? = deadline == .distantFuture ? nil : deadline - .now()
            return try await execute(request, within: left, logger: logger, options: options)
        }

        /// Sends a request; like ``execute(_:deadline:logger:options:)`` with a deadline this long from now.
        public func execute(
            _ request: HTTPClientRequest,
            timeout: TimeAmount,
            logger: Logger? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> HTTPClientResponse {
            try await execute(request, within: timeout, logger: logger, options: options)
        }

        /// Sends a request and returns the pipeline's own response: its source, the cache's decision, every attempt.
        ///
        /// - Parameters:
        ///   - request: the client's own request type.
        ///   - timeout: until the response head; nil, the default: that of `options`, or of the pipeline.
        ///   - logger: passed to the client for each attempt; nil, the default: none.
        ///   - options: options for cache and retries.
        /// - Throws: `ServiceError`, or `CancellationError`; errors are not converted.
        public func respond(
            to request: HTTPClientRequest,
            timeout: TimeAmount? = nil,
            logger: Logger? = nil,
            options: CallOptions = CallOptions()
        ) async throws -> Response {
            try await respond(to: request, within: timeout, call: ClientCall(request, logger: logger), options: options)
        }

        private func execute(
            _ request: HTTPClientRequest,
            within timeout: TimeAmount?,
            logger: Logger?,
            options: CallOptions
        ) async throws -> HTTPClientResponse {
            do {
                let call = ClientCall(request, logger: logger)
                let response = try await respond(to: request, within: timeout, call: call, options: options)
                return HTTPClientResponse(response, to: request, version: call.version)
            } catch let error as ServiceError {
                throw ClientErrors.clientError(of: error)
            }
        }

        private func respond(
            to request: HTTPClientRequest,
            within timeout: TimeAmount?,
            call: ClientCall,
            options: CallOptions
        ) async throws -> Response {
            var options = options
            if let timeout {
                let allowed = Duration.nanoseconds(max(timeout.nanoseconds, 0))
                if options.timeout.map({ allowed < $0 }) ?? true {
                    options.setTimeout(allowed, of: TimeLimit(allowed, setting: .argument))
                }
            }
            if request.tlsConfiguration != nil || request.localAddress != nil {
                guard pipeline.endsInAsyncHTTPClient else {
                    throw ServiceError(
                        .unsupported,
                        "The request has a `tlsConfiguration` or `localAddress`, which only a pipeline whose transport is an "
                            + "AsyncHTTPClientTransport uses. Use one, or leave them out.",
                        progress: .notSent
                    )
                }
            }
            if request.tlsConfiguration != nil, options.principal == nil {
                // A client certificate is a credential that the cache cannot see.
                options.cache.noStore = true
            }
            let (outgoing, body) = try request.forPipeline()
            options.transportDetails = call
            return try await pipeline.send(outgoing, body: body, options: options)
        }
    }

    extension Pipeline {
        /// Whether the parts of a client's request that are not fields reach the network.
        fileprivate var endsInAsyncHTTPClient: Bool {
            transport is AsyncHTTPClientTransport || (transport as? Pipeline)?.endsInAsyncHTTPClient ?? false
        }
    }

    extension HTTPClient {
        /// Puts a cache, retries and hooks in front of this client, which is not changed and remains yours to shut down.
        ///
        /// Create it once and keep it: each use of a retrier's `.default` is a new budget.
        ///
        /// - Parameters:
        ///   - cache: stores responses and answers from them by RFC 9111; nil, the default: no cache.
        ///   - retrierFactory: makes the retrier of each call that fails; `.never` by default.
        ///   - hooks: take part in each call, in this order.
        ///   - configuration: clock, timeouts, redirects, prepare steps, observers.
        public func holdfast(
            cache: HTTPCache? = nil,
            retrierFactory: any RetrierFactory = .never,
            hooks: [any ServiceHook] = [],
            configuration: PipelineConfiguration = PipelineConfiguration()
        ) -> HoldfastHTTPClient {
            HoldfastHTTPClient(
                Pipeline(
                    transport: AsyncHTTPClientTransport(client: self),
                    cache: cache,
                    retrierFactory: retrierFactory,
                    hooks: hooks,
                    configuration: configuration
                )
            )
        }
    }

    /// What a call of ``HoldfastHTTPClient`` has in addition to a URLRequest, passed around the pipeline to the transport.
    final class ClientCall: Sendable {
        let tlsConfiguration: TLSConfiguration?
        let localAddress: String?
        let logger: Logger?
        private let lastVersion = Mutex<HTTPVersion?>(nil)

        init(_ request: HTTPClientRequest, logger: Logger?) {
            tlsConfiguration = request.tlsConfiguration
            localAddress = request.localAddress
            self.logger = logger
        }

        /// The HTTP version of the last response that a transport received for this call.
        var version: HTTPVersion? { lastVersion.withLock { $0 } }

        func note(_ version: HTTPVersion) {
            lastVersion.withLock { $0 = version }
        }
    }

    /// Converts the pipeline's errors to the client's, for call sites that catch the client's errors.
    enum ClientErrors {
        /// The client's error for `error`; the error itself if the client has none.
        static func clientError(of error: ServiceError) -> any Error {
            switch error.code {
            case .deadlineExceeded: return HTTPClientError.deadlineExceeded
            case .timeout: return error.cause ?? HTTPClientError.deadlineExceeded
            case .tooManyRedirects: return error.cause ?? HTTPClientError.redirectLimitReached
            // For a body that fails the client passes the error on, and for an invalid URL it has an error of its own.
            case .badRequest: return error.cause ?? error
            default: break
            }
            guard let cause = error.cause, cause is HTTPClientError || ClientFailure.meaning(ofLower: cause) != nil
            else {
                return error
            }
            return cause
        }
    }
#endif
