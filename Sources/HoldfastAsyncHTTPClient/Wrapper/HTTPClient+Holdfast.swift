// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    public import AsyncHTTPClient
    public import Holdfast

    extension HTTPClient {
        /// Puts a cache, retries and hooks in front of this client, which is not changed and remains yours to shut down.
        ///
        /// Create it once and keep it: each use of `.default` creates a new cache.
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
#endif
