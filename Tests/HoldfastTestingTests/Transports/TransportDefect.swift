// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A transport that is broken in one way, and the checks that must find it.
struct TransportDefect: Sendable, CustomStringConvertible {
    typealias Sending =
        @Sendable (
            _ sound: any Transport, _ request: URLRequest, _ body: RequestBody, _ context: CallContext
        ) async throws -> Response

    let description: String
    let checks: [String]
    let capabilities: TransportCapabilities
    /// Whether a check can only see it by waiting in vain.
    let hangs: Bool
    let make: @Sendable () -> any Transport

    init(
        _ description: String,
        foundBy checks: [String],
        hangs: Bool = false,
        declaring declare: (inout TransportCapabilities) -> Void = { _ in },
        sending: @escaping Sending
    ) {
        self.init(description, foundBy: checks, hangs: hangs, declaring: declare) {
            DefectiveTransport(sending: sending)
        }
    }

    /// A defect that is in what a transport declares, or that needs a memory.
    init(
        _ description: String,
        foundBy checks: [String],
        hangs: Bool = false,
        declaring declare: (inout TransportCapabilities) -> Void = { _ in },
        make: @escaping @Sendable () -> any Transport = { URLSessionTransport() }
    ) {
        self.description = description
        self.checks = checks
        self.hangs = hangs
        var capabilities = TransportCapabilities.urlSession
        declare(&capabilities)
        self.capabilities = capabilities
        self.make = make
    }

    /// A defect of responses only.
    static func ofResponses(
        _ description: String,
        foundBy checks: [String],
        declaring declare: (inout TransportCapabilities) -> Void = { _ in },
        spoil: @escaping @Sendable (inout Response, URLRequest) throws -> Void
    ) -> TransportDefect {
        TransportDefect(description, foundBy: checks, declaring: declare) { sound, request, body, context in
            var response = try await sound.send(request, body: body, context: context)
            try spoil(&response, request)
            return response
        }
    }

    /// A defect of requests only.
    static func ofRequests(
        _ description: String,
        foundBy checks: [String],
        spoil: @escaping @Sendable (inout URLRequest) -> Void
    ) -> TransportDefect {
        TransportDefect(description, foundBy: checks) { sound, request, body, context in
            var spoiled = request
            spoil(&spoiled)
            return try await sound.send(spoiled, body: body, context: context)
        }
    }

    /// A defect of the errors a transport throws, from the head or from the body.
    static func ofErrors(
        _ description: String,
        foundBy checks: [String],
        spoil: @escaping @Sendable (ServiceError) throws -> Void
    ) -> TransportDefect {
        TransportDefect(description, foundBy: checks) { sound, request, body, context in
            do {
                return try await sound.send(request, body: body, context: context)
            } catch let error as ServiceError {
                try spoil(error)
                return Response(status: 200)
            }
        }
    }
}

/// Sends through a sound transport, and spoils what comes of it.
private struct DefectiveTransport: Transport {
    let sound = URLSessionTransport()
    let sending: TransportDefect.Sending

    var enforcesDeadline: Bool { true }

    func implicitFields(for request: URLRequest) -> HeaderFields { sound.implicitFields(for: request) }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        try await sending(sound, request, body, context)
    }
}

/// A body that is handed on chunk by chunk, each changed or not.
final class SpoiledSource: ByteSource {
    typealias Next = @Sendable (_ source: any ByteSource, _ position: Int) async throws -> ByteChunk?

    private let source: any ByteSource
    private let position = Atomic(0)
    private let onNext: Next
    private let passesCancel: Bool

    init(_ source: any ByteSource, passesCancel: Bool = true, onNext: @escaping Next) {
        self.source = source
        self.passesCancel = passesCancel
        self.onNext = onNext
    }

    func next() async throws -> ByteChunk? {
        let chunk = try await onNext(source, position.load(ordering: .relaxed))
        position.add(chunk?.count ?? 0, ordering: .relaxed)
        return chunk
    }

    func cancel() {
        if passesCancel { source.cancel() }
    }
}

extension Response {
    /// Has its body read through `onNext`.
    mutating func spoilBody(passesCancel: Bool = true, onNext: @escaping SpoiledSource.Next) {
        guard let source = body.source else { return }
        body = ResponseBody(SpoiledSource(source, passesCancel: passesCancel, onNext: onNext), length: body.length)
    }
}
