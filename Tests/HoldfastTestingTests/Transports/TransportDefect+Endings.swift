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
        "a connection that ends before a request is an error with correct progress",
        "a connection that ends during a request is an error with correct progress",
        "an exchange that breaks during the request body is an error with correct progress",
        "an exchange that breaks before the head is an error with correct progress",
        "a response that is not HTTP is an error with correct progress",
    ]
    private static let kept = "a reused connection that breaks before the head is an error, and a POST is sent once"

    static let ofEndings: [TransportDefect] = [
        TransportDefect(
            "ignores cancellation",
            foundBy: [
                "a call that is cancelled before it begins sends nothing",
                "cancelling while the request body is being sent ends the exchange",
                "cancelling while the request body waits for more bytes ends the exchange",
                "cancelling while waiting for the head ends the exchange",
                "cancelling in the middle of the body ends the exchange",
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
                "dropping an unread body ends the exchange",
                "cancelling a body ends the exchange, and reading it throws CancellationError",
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
            foundBy: [kept, "an exchange that breaks before the head is an error with correct progress"],
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
            foundBy: ["an unusable URL is an error, and nothing was sent"]
        ) { throw ServiceError(.badRequest, "bad", cause: $0, progress: .bodySent) },
        TransportDefect(
            "forgets the deadline",
            foundBy: [
                "the attempt's deadline ends the wait for the head with .timeout, if the transport enforces it",
                "an attempt whose deadline has passed sends nothing, if the transport enforces it",
            ],
            hangs: true,
            sending: { sound, request, body, context in
                let patient = CallContext(clock: context.clock, options: context.options)
                return try await sound.send(request, body: body, context: patient)
            }
        ),
        TransportDefect(
            "ends bodies at the deadline",
            foundBy: ["the deadline has no effect once the head has arrived"],
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
            foundBy: ["a connection is reused once its body has been read, if the transport reuses connections"],
            sending: { _, request, body, context in
                try await URLSessionTransport().send(request, body: body, context: context)
            }
        ),
        TransportDefect(
            "uses a connection that was said to end",
            foundBy: ["a connection that the server closes after its response is not reused"],
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
