// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension TransportDefect {
    private static let broken = [
        "a connection that ends before a request is an error with honest progress",
        "a connection that ends within a request is an error with honest progress",
        "an exchange that breaks within the request body is an error with honest progress",
        "an exchange that breaks before the head is an error with honest progress",
        "an answer that is not HTTP is an error with honest progress",
    ]
    private static let kept = "a kept connection that breaks before the head is an error, and a POST is sent once"

    static let ofEndings: [TransportDefect] = [
        TransportDefect(
            "ignores cancellation",
            foundBy: [
                "cancelled before it begins, nothing is sent",
                "cancelled while the request body is sent, the exchange ends",
                "cancelled while its request body waits for more, the exchange ends",
                "cancelled while the head is awaited, the exchange ends",
                "cancelled in the middle of the body, the exchange ends",
            ],
            hangs: true,
            sending: { sound, request, body, context in
                var response = try await Task.detached {
                    try await sound.send(request, body: body, context: context)
                }.value
                response.spoilBody { source, _ in
                    try await Task.detached { try await source.next() }.value
                }
                return response
            }
        ),
        TransportDefect(
            "keeps what nobody reads",
            foundBy: [
                "a body that is dropped unread ends the exchange",
                "a body that is cancelled ends the exchange, and reading it throws CancellationError",
            ],
            hangs: true,
            make: { HoardingTransport() }
        ),
        .ofErrors("throws errors of its own", foundBy: broken + [kept]) {
            throw $0.cause ?? CocoaError(.fileNoSuchFile)
        },
        .ofErrors("says that nothing was sent", foundBy: Array(broken.dropFirst(2)) + [kept]) { error in
            var error = error
            error.progress = .notSent
            throw error
        },
        .ofErrors("does not say how far it came", foundBy: broken + [kept]) { error in
            var error = error
            error.progress = nil
            throw error
        },
        TransportDefect(
            "sends again by itself",
            foundBy: [kept, "an exchange that breaks before the head is an error with honest progress"],
            sending: { sound, request, body, context in
                do {
                    return try await sound.send(request, body: body, context: context)
                } catch {
                    return try await sound.send(request, body: body, context: context)
                }
            }
        ),
        .ofErrors(
            "calls everything a lost connection",
            foundBy: ["a refused connection is .connect, and nothing was sent"]
        ) { throw ServiceError(.connectionLost, "lost", cause: $0, progress: .bodySent) },
        .ofErrors(
            "takes an impossible URL for sent",
            foundBy: ["a URL that cannot be sent to is an error, and nothing was sent"]
        ) { throw ServiceError(.badRequest, "bad", cause: $0, progress: .bodySent) },
        TransportDefect(
            "forgets the deadline",
            foundBy: [
                "the attempt's deadline ends the wait for a head with .timeout, where the transport enforces it",
                "a deadline that has passed sends nothing, where the transport enforces it",
            ],
            hangs: true,
            sending: { sound, request, body, context in
                let patient = CallContext(clock: context.clock, options: context.options)
                return try await sound.send(request, body: body, context: patient)
            }
        ),
        TransportDefect(
            "ends bodies at the deadline",
            foundBy: ["the deadline has no say once the head is there"],
            sending: { sound, request, body, context in
                var response = try await sound.send(request, body: body, context: context)
                response.spoilBody { source, _ in
                    if let deadline = context.attemptDeadline, context.clock.now >= deadline {
                        throw ServiceError(.timeout, "late", progress: .bytesReceived)
                    }
                    return try await source.next()
                }
                return response
            }
        ),
        TransportDefect(
            "takes a new connection each time",
            foundBy: ["a connection is used again once its body is read, where the transport does so"],
            sending: { _, request, body, context in
                try await URLSessionTransport().send(request, body: body, context: context)
            }
        ),
        TransportDefect(
            "uses a connection that was said to end",
            foundBy: ["a connection that the server ends with its answer is not used again"],
            make: { StubbornTransport() }
        ),
    ]
}

/// Holds on to every body, and lets nobody cancel one.
private final class HoardingTransport: Transport {
    private let sound = URLSessionTransport()
    private let kept = Mutex<[ResponseBody]>([])

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        var response = try await sound.send(request, body: body, context: context)
        response.spoilBody(passesCancel: false) { source, _ in try await source.next() }
        let body = response.body
        kept.withLock { $0.append(body) }
        return response
    }
}

/// Fails where a sound transport would have made a new connection.
private final class StubbornTransport: Transport {
    private let sound = URLSessionTransport()
    private let isClosed = Atomic(false)

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        if isClosed.exchange(false, ordering: .relaxed) {
            throw ServiceError(.connectionLost, "closed", progress: .headSent, connectionReused: true)
        }
        let response = try await sound.send(request, body: body, context: context)
        isClosed.store(response.fields["Connection"] == "close", ordering: .relaxed)
        return response
    }
}
