// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Surrounds each call, and each time something is sent for it: what binds task-local values, such as those of a trace.
///
/// **Choose.** The observer of HoldfastObservability, which opens spans. **Use.** List it in
/// ``PipelineConfiguration/interceptors``. **Implement.** Call the continuation exactly once, within the function, and return
/// what comes of it; a hook is the place to edit requests, to answer them and to fail them.
///
/// An exchange that several calls share, or that goes on in the background, runs with the task-local values of the call that
/// began it.
public protocol CallInterceptor: Sendable {
    /// Surrounds a call, from before its first hook to its response head or error.
    ///
    /// Runs on the caller's task, so the caller's own task-local values are at hand. ``ServiceEvent/Name/callStarted`` and
    /// ``ServiceEvent/Name/callEnded`` come within it.
    func interceptCall(
        _ request: URLRequest,
        context: CallContext,
        proceed: () async throws -> Response
    ) async throws -> Response

    /// Surrounds one sending of a request: an attempt, a copy of a hedge, the resume of a body. None where nothing is sent, as by
    /// an open circuit.
    ///
    /// - Parameters:
    ///   - request: the request as it would be sent.
    ///   - context: what is known of the call, the number of the attempt included.
    ///   - proceed: sends; the request it is given may bear further fields, such as a trace's. No cache and no hook sees them, so
    ///     they must not change the response.
    func interceptSend(
        _ request: URLRequest,
        context: CallContext,
        proceed: (URLRequest) async throws -> Response
    ) async throws -> Response
}

/// A transport with what surrounds its sends.
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
