// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    public import Holdfast

    /// Serves a page on this machine that shows what a cache does: hit rate and traffic, entries, calls, origins, and buttons that
    /// purge.
    ///
    ///     let model = InspectorModel(cache: cache)
    ///     configuration.observers.append(model)
    ///     // … make the pipeline with `cache`, `configuration` and a retrier factory …
    ///     let inspector = Inspector(model: model, governor: retrierFactory.governor)
    ///     let port = try await inspector.start(port: 9090)
    ///     // … until the proxy ends:
    ///     await inspector.stop()
    ///
    /// It listens on 127.0.0.1 alone, answers no request of another machine, of another site's page or under another name, and
    /// shows no credential. Nothing of it counts as a request to the cache.
    public final class Inspector: Sendable {
        private let model: InspectorModel
        private let governor: RetryGovernor?

        /// An inspector that listens nowhere yet.
        ///
        /// - Parameters:
        ///   - model: what has been remembered; list it among the observers of the pipeline.
        ///   - governor: whose budgets are shown, that of the pipeline's retrier factory; nil, the default: none are.
        public init(model: InspectorModel, governor: RetryGovernor? = nil) {
            self.model = model
            self.governor = governor
        }

        /// Begins to listen on 127.0.0.1, once.
        ///
        /// - Parameter port: 0 takes any that is free.
        /// - Returns: the port.
        /// - Throws: what the server throws where the port is taken.
        public func start(port: Int) async throws -> Int {
            throw ServiceError(.unsupported, "The inspector has no server yet.")
        }

        /// Ends the server and its connections.
        public func stop() async {}
    }
#endif
