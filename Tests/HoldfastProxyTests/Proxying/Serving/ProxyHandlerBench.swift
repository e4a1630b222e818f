// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import Holdfast
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Synchronization

    @testable import HoldfastProxy

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Makes handlers whose clock moves when the test says so.
    struct ProxyHandlerBench {
        let clock = ManualClock()

        func handler(
            _ transport: any Transport,
            cache: HTTPCache? = nil,
            role: ProxyRole? = nil,
            asksByHost: Bool = false,
            retrierFactory: any RetrierFactory = .never
        ) throws -> ProxyHandler {
            var configuration = PipelineConfiguration()
            configuration.clock = clock
            configuration.redirects = .returnToCaller
            configuration.attemptTimeout = nil
            let pipeline = Pipeline(
                transport: transport,
                cache: cache,
                retrierFactory: retrierFactory,
                configuration: configuration
            )
            let role = try role ?? .reverse(ProxyOrigin("http://origin.example"))
            var handler = ProxyHandler(
                pipeline: pipeline,
                targets: TargetRules(
                    role: role,
                    ownHost: "127.0.0.1",
                    ownPort: BoundPort(8080),
                    asksByHost: asksByHost
                )
            )
            handler.answerTimeout = .seconds(9)
            return handler
        }

        func text(_ response: Response) async throws -> String {
            String(decoding: try await response.body.collect().array, as: UTF8.self)
        }
    }
#endif
