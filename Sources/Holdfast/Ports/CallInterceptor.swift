// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    public import Foundation
#endif

/// Wraps each call, and each request that is sent for it, to bind task-local values such as those of a trace.
///
/// **Choose.** The observer of HoldfastObservability, which opens spans. **Use.** List it in
/// ``PipelineConfiguration/interceptors``. **Implement.** Call the continuation exactly once, within the function, and return
/// its result. To edit, answer or fail requests, use a hook.
///
/// An exchange that several calls share, or that continues in the background, runs with the task-local values of the call that
/// began it.
package protocol CallInterceptor: Sendable {
    /// Wraps a call, from before its first hook to its response head or error.
    ///
    /// Runs on the caller's task, so the caller's own task-local values are available. ``ServiceEvent/Name/callStarted`` and
    /// ``ServiceEvent/Name/callEnded`` come within it.
    func interceptCall(
        _ request: URLRequest,
        context: CallContext,
        proceed: () async throws -> Response
    ) async throws -> Response

    /// Wraps each sending of a request: an attempt, a copy of a hedge, or the resuming of a body. Not called if nothing is
    /// sent, as with an open circuit.
    ///
    /// - Parameters:
    ///   - request: the request as it would be sent.
    ///   - context: what is known about the call, including the number of the attempt.
    ///   - proceed: sends; you may add fields to the request that you pass, such as a trace's. Caches and hooks do not see
    ///     them, so they must not change the response.
    func interceptSend(
        _ request: URLRequest,
        context: CallContext,
        proceed: (URLRequest) async throws -> Response
    ) async throws -> Response
}

/// A transport whose sends are wrapped by interceptors.
struct SurroundedTransport: Transport {
    let transport: any Transport
    let interceptors: [any CallInterceptor]

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await send(request, body: body, context: context, through: interceptors[...])
    }

    func implicitFields(for request: URLRequest) -> HeaderFields { transport.implicitFields(for: request) }
    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }
    var enforcesDeadline: Bool { transport.enforcesDeadline }

    private func send(
        _ request: URLRequest,
        body: RequestBody,
        context: CallContext,
        through interceptors: ArraySlice<any CallInterceptor>
    ) async throws -> Response {
        guard let outermost = interceptors.first else {
            return try await transport.send(request, body: body, context: context)
        }
        return try await outermost.interceptSend(request, context: context) { request in
            try await send(request, body: body, context: context, through: interceptors.dropFirst())
        }
    }
}
