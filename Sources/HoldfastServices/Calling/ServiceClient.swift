// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
internal import HoldfastSemantics

/// Sends typed requests to one service.
///
/// Made once and kept: it reads hooks, cache, retrier factory and transport from its service when it is made, so what they hold
/// lives as long as the client, also where the service computes them anew each time. A value: copies share all of these, and
/// may be used from any number of tasks.
public struct ServiceClient<Service: HttpService>: Sendable {
    /// The service.
    public let service: Service
    /// The pipeline beneath all calls; for requests of another kind, `drain()`, or its cache.
    public let pipeline: Pipeline
    let requestHooks: [any RequestHook]
    let judgesAttempts: Bool

    /// A client of `service`.
    ///
    /// - Parameters:
    ///   - service: the API.
    ///   - transport: in place of the service's; a mock in tests.
    ///   - cache: in place of the service's.
    ///   - retrierFactory: in place of the service's.
    ///   - hooks: below those of the service.
    ///   - requestHooks: below those of the service.
    ///   - configuration: in place of the service's.
    public init(
        _ service: Service,
        transport: (any Transport)? = nil,
        cache: HTTPCache? = nil,
        retrierFactory: (any RetrierFactory)? = nil,
        hooks: [any ServiceHook] = [],
        requestHooks: [any RequestHook] = [],
        configuration: PipelineConfiguration? = nil
    ) {
        self.service = service
        let factory = retrierFactory ?? service.retrierFactory
        pipeline = Pipeline(
            transport: transport ?? service.transport,
            cache: cache ?? service.cache,
            retrierFactory: factory,
            hooks: service.hooks + hooks,
            configuration: configuration ?? service.pipelineConfiguration
        )
        self.requestHooks = service.requestHooks + requestHooks
        judgesAttempts = factory.judgesAttempts
    }
}
