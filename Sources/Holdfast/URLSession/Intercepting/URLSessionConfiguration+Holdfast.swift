// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension URLSessionConfiguration {
    /// A fresh default configuration whose sessions send through a pipeline; as ``intercepted(by:matching:bodyLimit:)``.
    public static func holdfast(
        _ pipeline: Pipeline,
        matching: (@Sendable (URLRequest) -> Bool)? = nil
    ) -> URLSessionConfiguration {
        URLSessionConfiguration.default.intercepted(by: pipeline, matching: matching)
    }

    /// A copy of this configuration whose sessions send their http and https requests through a pipeline.
    ///
    /// For code that makes its calls on a URLSession and cannot be changed; where it can be, `pipeline.data(for:)` does more
    /// for less. Cache, retries, redirects, hooks and events are the pipeline's. Header fields, cookies, timeouts and cache
    /// policy of the configuration hold as they are now: change them before, not after. Where the pipeline cannot load a
    /// task, the session loads it as without us: uploads and downloads on Linux. The table is in `docs/clients/intercepting.md`.
    ///
    /// The same pipeline, settings and limit share one protocol class; each use with `matching` makes one, so make such
    /// configurations once. A class holds its pipeline until ``Pipeline/stopIntercepting()``. There may be 4096 at a time;
    /// beyond that the copy is not intercepted.
    ///
    /// - Parameters:
    ///   - pipeline: what to send through. Its transport needs a session without interception: `URLSessionTransport` sees to
    ///     that by itself, whatever configuration it is made of.
    ///   - matching: which requests belong to the pipeline; must be quick, is called from any thread and more than once for
    ///     a request. nil, the default: all.
    ///   - bodyLimit: the most bytes of a response on Linux, where a body is handed over whole; a longer one fails with
    ///     `URLError.dataLengthExceedsMaximum`. 64 MiB by default. Without effect on Apple systems, where bodies stream.
    public func intercepted(
        by pipeline: Pipeline,
        matching: (@Sendable (URLRequest) -> Bool)? = nil,
        bodyLimit: Int = 64 << 20
    ) -> URLSessionConfiguration {
        let copy = (copy() as? URLSessionConfiguration) ?? self
        #if !canImport(Darwin)
            // Foundation on Linux would trap on a value that is no text.
            if let headers = copy.httpAdditionalHeaders { copy.httpAdditionalHeaders = SessionFields.texts(headers) }
        #endif
        // What takes all requests stands in for what took some, so that nothing grows where it is asked for again and again.
        if matching == nil { copy.removeInterceptions { $0.map { $0.pipelineIdentity == pipeline.identity } ?? true } }
        let interception = Interception(
            pipeline: pipeline,
            settings: InterceptionSettings(copy),
            matching: matching,
            bodyLimit: bodyLimit
        )
        let key = InterceptionRegistry.Key(
            pipeline: pipeline.identity,
            settings: interception.settings.identity,
            bodyLimit: bodyLimit
        )
        let registry = InterceptionRegistry.shared
        if let first = registry.protocolClass(for: interception, key: matching == nil ? key : nil) {
            copy.protocolClasses = [first] + (copy.protocolClasses ?? [])
        }
        return copy
    }

    /// Takes out what ``intercepted(by:matching:bodyLimit:)`` put in, or those of it that are chosen; nil stands for an
    /// interception that was withdrawn.
    func removeInterceptions(where isChosen: (Interception?) -> Bool = { _ in true }) {
        guard let protocolClasses else { return }
        let others = protocolClasses.filter { other in
            guard let ours = other as? InterceptingURLProtocol.Type else { return true }
            return !isChosen(InterceptionRegistry.shared.interception(of: ours))
        }
        if others.count < protocolClasses.count { self.protocolClasses = others }
    }
}

extension Pipeline {
    /// Ends all interceptions by this pipeline and its copies: sessions of their configurations go on as if there were none.
    ///
    /// Requests under way end as they began. Idempotent; the pipeline itself can still be used, and can intercept again.
    public func stopIntercepting() {
        InterceptionRegistry.shared.withdraw(pipeline: identity)
    }
}
