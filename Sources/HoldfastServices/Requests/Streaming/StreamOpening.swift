// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The request that opens a stream, built as any typed request is.
struct StreamOpening<Stream: StreamRequest>: Request {
    typealias Result = Void

    private let stream: Stream

    init(_ stream: Stream) {
        self.stream = stream
    }

    var url: (any UrlConvertible)? { stream.url }
    var usesSecureProtocol: Bool? { stream.usesSecureProtocol }
    var routes: HttpRoute { get throws { try stream.routes } }
    var query: HttpQuery { get throws { try stream.query } }
    var authorizationRequirement: AuthorizationRequirement { stream.authorizationRequirement }

    var header: HttpHeader {
        get throws {
            var header = try stream.header
            if !stream.subprotocols.isEmpty, !header.contains("Sec-WebSocket-Protocol") {
                header["Sec-WebSocket-Protocol"] = stream.subprotocols.joined(separator: ", ")
            }
            return header
        }
    }

    func prepare(_ request: URLRequest) async throws -> URLRequest {
        var request = request
        if let text = request.url?.absoluteString, text.hasPrefix("http") {
            request.url = URL(string: "ws" + text.dropFirst(4))
        }
        return try await stream.prepare(request)
    }

    /// The request; refused where a credential is required that only the pipeline would have added, which has no part in streams.
    private func built<Service>(by client: ServiceClient<Service>) async throws -> URLRequest {
        let built = try await client.build(self)
        guard authorizationRequirement != .required || built.bearsCredential else {
            throw ServiceError(
                .authorizationFailed,
                "This stream needs a credential and its request has none: log in first. The authorization of the pipeline's "
                    + "configuration has no part in streams; give the service an `authorization`.",
                progress: .notSent
            )
        }
        try built.urlRequest.checkHead()
        return built.urlRequest
    }

    /// Builds the request and opens the stream, both within its time: a token that never comes must not hold it for ever.
    func open<Service>(
        _ client: ServiceClient<Service>,
        transport: any StreamTransport
    ) async throws -> any StreamConnection {
        let limits = stream.limits
        let clock = client.pipeline.configuration.clock
        let open: @Sendable () async throws -> any StreamConnection = {
            let request = try await built(by: client)
            return try await transport.open(request, limits: limits)
        }
        guard let timeout = limits.openTimeout ?? client.pipeline.configuration.attemptTimeout else {
            return try await open()
        }
        let deadline = clock.now.advanced(by: timeout)
        do {
            return try await withDeadline(
                deadline,
                on: clock,
                discard: { $0.close(code: .goingAway, reason: nil) },
                operation: open
            )
        } catch let error as ServiceError where error.code == .timeout && clock.now >= deadline {
            throw ServiceError(
                .timeout,
                "The stream was not open within \(timeout); raise `StreamLimits.openTimeout`, or find out why the server is slow, or "
                    + "what the request's header fields waited for.",
                cause: error,
                progress: error.progress
            )
        }
    }
}

extension ServiceError {
    /// Whether it tells of a message that cannot be sent rather than of the stream's end.
    var isOfOneMessage: Bool {
        code == .encodingFailed || code == .bodyTooLarge || code == .tooManyInFlight
    }
}
