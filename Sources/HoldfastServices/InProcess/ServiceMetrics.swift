// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What one call to a service cost; reported once its response was read to the end, failed or was released.
public struct ServiceMetrics: Sendable {
    /// The identifier of the requested service, registered or not; empty if the URL has none.
    public let serviceIdentifier: String
    /// The path of the URL, percent-decoded; no host and no user name.
    public let path: String
    /// The query of the URL as it was sent, nil if there was none. It may contain a secret: do not log it unchecked.
    public let query: String?
    /// The method.
    public let method: RequestMethod
    /// Bytes of content that the caller sent; nil for a stream of unknown length.
    public internal(set) var bytesSent: Int?
    /// Bytes of content that the caller received.
    public internal(set) var bytesReceived = 0
    /// The status of the response; nil if there was none.
    public internal(set) var status: StatusCode?
    /// The error of the call or its body.
    public internal(set) var error: (any Error)?
    /// From the start of the call to the end of its body, by the call's clock.
    public internal(set) var duration: Duration = .zero

    /// ``duration`` in milliseconds.
    public var milliseconds: Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }

    init(_ request: URLRequest, url: URL, body: RequestBody, serviceIdentifier: String) {
        self.serviceIdentifier = serviceIdentifier
        path = url.path
        query = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedQuery
        method = RequestMethod(rawValue: request.httpMethod ?? "GET")
        bytesSent = body.knownLength
    }
}

extension ServiceEvent.Name {
    /// A service in this process answered; has status, delay, bytes received and, in `ServiceEvent.detail`, method and path.
    public static let serviceAnswered = ServiceEvent.Name("service-answered")
    /// A service in this process broke its contract; `ServiceEvent.detail` says which rule.
    public static let serviceContractViolated = ServiceEvent.Name("service-contract-violated")
}

/// Follows one call to a service to its end, and reports it once.
final class ServiceMeter: Sendable {
    private let metrics: Mutex<ServiceMetrics?>
    private let start: MonotonicInstant
    private let context: CallContext
    private let tell: (@Sendable (ServiceMetrics) -> Void)?

    init(_ metrics: ServiceMetrics, context: CallContext, tell: (@Sendable (ServiceMetrics) -> Void)?) {
        self.metrics = Mutex(metrics)
        self.context = context
        self.tell = tell
        start = context.clock.now
    }

    /// The same response, with its content counted.
    func following(_ response: Response) -> Response {
        var response = response
        metrics.withLock { $0?.status = response.status }
        if let source = response.body.source {
            let watched = WatchedBody(source, received: { self.received($0.upperBound) }, ended: { self.end($1.error) })
            response.body = ResponseBody(watched, length: response.body.length)
        } else {
            received(response.body.length ?? 0)
            end(nil)
        }
        return response
    }

    private func received(_ total: Int) { metrics.withLock { $0?.bytesReceived = total } }

    func end(_ error: (any Error)?) {
        let taken: ServiceMetrics? = metrics.withLock { metrics in
            defer { metrics = nil }
            return metrics
        }
        guard var taken else { return }
        taken.duration = start.duration(to: context.clock.now)
        taken.error = error
        context.emit(.serviceAnswered) { event in
            event.attempt = context.attempt
            event.status = taken.status
            event.source = .inProcess
            event.delay = taken.duration
            event.bytes = taken.bytesReceived
            event.error = error
            event.detail = "\(taken.method) \(taken.path)"
        }
        tell?(taken)
    }
}

extension RequestBody {
    /// The length in bytes, if known before the content is read.
    fileprivate var knownLength: Int? {
        switch form {
        case .none: 0
        case .bytes(let bytes): bytes.count
        case .file(let url): try? url.resourceValues(forKeys: [.fileSizeKey]).fileSize
        case .factory(let length, _), .oneShot(let length, _): length
        case .requestStream: nil
        }
    }
}
