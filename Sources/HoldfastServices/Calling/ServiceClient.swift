// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
internal import HoldfastSemantics

/// Sends typed requests to one service.
///
/// Create one and keep it. It reads hooks, cache, retrier factory and transport from its service when it is created, so their
/// state lives as long as the client, even if the service computes them each time. Copies share all of these and may be used
/// from any number of tasks.
public struct ServiceClient<Service: HttpService>: Sendable {
    /// The service.
    public let service: Service
    /// The pipeline below all calls; for other requests, `drain()`, or its cache.
    public let pipeline: Pipeline
    let requestHooks: [any RequestHook]
    let judgesAttempts: Bool

    /// Creates a client of `service`.
    ///
    /// - Parameters:
    ///   - service: the API.
    ///   - transport: replaces the service's; a mock in tests.
    ///   - cache: replaces the service's.
    ///   - retrierFactory: replaces the service's.
    ///   - hooks: added below those of the service.
    ///   - requestHooks: added below those of the service.
    ///   - configuration: replaces the service's.
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
