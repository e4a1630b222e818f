// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A pipeline that stands in a configuration: which requests it takes, and how they are treated.
struct Interception: Sendable {
    /// The pipelines that the running code is serving a request for.
    ///
    /// What the transport or a hook of a pipeline sends through an intercepted session of its own must not come back to it.
    @TaskLocal static var pipelinesAtWork: Set<ObjectIdentifier> = []

    let pipeline: Pipeline
    let settings: InterceptionSettings
    let matching: (@Sendable (URLRequest) -> Bool)?
    let bodyLimit: Int

    var pipelineIdentity: ObjectIdentifier { pipeline.identity }

    /// Whether a request belongs to the pipeline. Runs no code of the pipeline's.
    func takes(_ request: URLRequest) -> Bool {
        guard let scheme = request.url?.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            return false
        }
        guard !Interception.pipelinesAtWork.contains(pipelineIdentity),
            !Interception.isMarked(request, by: pipelineIdentity)
        else { return false }
        return matching?(request) ?? true
    }

    /// Sends a request through the pipeline, up to the response head.
    func send(_ request: URLRequest) async throws -> Response {
        var options = CallOptions()
        options.timeout = settings.callTimeout(within: pipeline.configuration.callTimeout)
        options.cookies = settings.cookies(for: request)
        return try await pipeline.send(settings.complete(request), options: options)
    }

    #if canImport(Darwin)
        private static func mark(of pipeline: ObjectIdentifier) -> String {
            "holdfast.intercepted.\(UInt(bitPattern: pipeline))"
        }

        private static func isMarked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> Bool {
            URLProtocol.property(forKey: mark(of: pipeline), in: request) != nil
        }

        /// A request that is known again: Apple's loading system asks on a thread of its own, which no task-local reaches.
        static func marked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> URLRequest {
            guard let marked = (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return request }
            URLProtocol.setProperty(true, forKey: mark(of: pipeline), in: marked)
            return marked as URLRequest
        }
    #else
        // Foundation on Linux loses a request's properties where URLRequest and NSURLRequest meet, but asks `canInit` on the
        // thread that resumes the task, where the task-local is seen.
        private static func isMarked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> Bool { false }
        static func marked(_ request: URLRequest, by pipeline: ObjectIdentifier) -> URLRequest { request }
    #endif
}

extension Pipeline {
    /// What copies of a pipeline have in common.
    var identity: ObjectIdentifier { ObjectIdentifier(background) }
}
