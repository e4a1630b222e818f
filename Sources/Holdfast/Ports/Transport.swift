// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Sends one request and hands up one response: the port to the network.
///
/// **Choose.** ``URLSessionTransport`` for the platform's URLSession, `ServiceRouter` (HoldfastServices) for services in
/// this process, `ScriptedTransport` (HoldfastTesting) in tests, or another ``Pipeline``.
/// **Use.** Give it to a ``Pipeline``; calling ``send(_:body:context:)`` yourself skips cache, hooks and retries.
/// **Implement.** Follow no redirect, retry nothing, keep no cache. Return when the response head is there and stream the
/// body behind it. Throw ``ServiceError`` with the ``ServiceError/progress`` the exchange had made, because retries of
/// unsafe requests are decided by it; any other error counts as if the whole request had been sent. Throw
/// `CancellationError` promptly when the task is cancelled, and release the connection when a body is dropped.
public protocol Transport: Sendable {
    /// Sends `request` with `body` and returns at the response head.
    ///
    /// - Parameters:
    ///   - request: the head to send; its own `httpBody` and `httpBodyStream` are not to be read.
    ///   - body: the content to send.
    ///   - context: the call it belongs to; give interim responses to ``CallContext/report(interim:)``, and end by
    ///     ``CallContext/attemptDeadline`` if ``enforcesDeadline`` says so.
    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response

    /// The header fields this transport will add below the hooks: session headers, cookies. None by default.
    ///
    /// A cache judges partition, Vary and storability on the request's fields and these; a transport that hides a
    /// credential here would let one user see another's responses. Must be quick and must not suspend.
    func implicitFields(for request: URLRequest) -> HeaderFields

    /// The header fields this transport will add to a request of a call that is under way; by default those of
    /// ``implicitFields(for:)``.
    ///
    /// Asked where ``CallContext/isForeignHop`` holds, since a transport may keep fields from other origins then. A transport that
    /// wraps another one should pass the question on; where it does not, the other one's answer for an ordinary request counts.
    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields

    /// Whether the transport itself ends an exchange with `.timeout` at ``CallContext/attemptDeadline``. False by default;
    /// the pipeline then races it against the clock.
    var enforcesDeadline: Bool { get }
}

extension Transport {
    public func implicitFields(for request: URLRequest) -> HeaderFields { HeaderFields() }
    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        implicitFields(for: request)
    }
    public var enforcesDeadline: Bool { false }
}
