// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Sends one request and returns one response: the port to the network.
///
/// **Choose.** ``URLSessionTransport`` for the platform's URLSession, `ServiceRouter` (HoldfastServices) for services in this
/// process, `ScriptedTransport` (HoldfastTesting) in tests, or another ``Pipeline``. **Use.** Give it to a ``Pipeline``;
/// calling ``send(_:body:context:)`` yourself skips cache, hooks and retries. **Implement.** Do not follow redirects, do not
/// retry, do not cache. Return when the response head has arrived, and stream the body after it. Throw ``ServiceError`` with
/// the ``ServiceError/progress`` of the exchange, because it decides whether unsafe requests are retried; any other error
/// counts as if the whole request had been sent. Throw `CancellationError` promptly when the task is cancelled, and release the
/// connection when a body is dropped.
public protocol Transport: Sendable {
    /// Sends `request` with `body` and returns at the response head.
    ///
    /// - Parameters:
    ///   - request: the head to send; do not read its `httpBody` and `httpBodyStream`.
    ///   - body: the content to send.
    ///   - context: the call it belongs to; pass interim responses to ``CallContext/report(interim:)``, and end by
    ///     ``CallContext/attemptDeadline`` if ``Transport/enforcesDeadline`` is true.
    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response

    /// The header fields that this transport will add below the hooks, such as session headers and cookies; none by default.
    ///
    /// A cache decides partition, Vary and storability by these and the request's own fields; a transport that hid a credential
    /// would let one user see another's responses. Must be quick and must not suspend.
    func implicitFields(for request: URLRequest) -> HeaderFields

    /// The header fields that this transport will add to a request of a call in progress; by default those of
    /// ``implicitFields(for:)``.
    ///
    /// Called if ``CallContext/isForeignHop`` is true, because a transport may then withhold fields from the other origin. A
    /// transport that wraps another one should forward this call; if it does not, the other one's answer for an ordinary
    /// request is used.
    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields

    /// Whether the transport itself ends an exchange with `.timeout` at ``CallContext/attemptDeadline``. If false, the default,
    /// the pipeline races it against the clock.
    var enforcesDeadline: Bool { get }
}

extension Transport {
    public func implicitFields(for request: URLRequest) -> HeaderFields { HeaderFields() }
    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        implicitFields(for: request)
    }
    public var enforcesDeadline: Bool { false }
}

/// A transport that wraps another one, and adds neither fields nor a deadline of its own.
package protocol WrappingTransport: Transport {
    /// The wrapped one.
    var transport: any Transport { get }
}

extension WrappingTransport {
    public func implicitFields(for request: URLRequest) -> HeaderFields { transport.implicitFields(for: request) }
    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }
    public var enforcesDeadline: Bool { transport.enforcesDeadline }
}
