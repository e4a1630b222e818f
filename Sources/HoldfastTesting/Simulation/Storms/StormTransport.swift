// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// The way of one client process to the simulated server.
struct StormTransport: Transport {
    let process: Int
    let world: StormWorld
    let refusal: StatusCode

    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let resource = request.url.flatMap { Int($0.lastPathComponent) } ?? 0
        let answer = world.submit(
            process,
            resource: resource,
            attempt: context.attempt,
            now: context.clock.now.sinceOrigin,
            limit: context.attemptDeadline?.sinceOrigin
        )
        do {
            try await context.clock.sleep(until: MonotonicInstant(sinceOrigin: answer.time))
        } catch {
            world.stopped(process, answer, now: context.clock.now.sinceOrigin)
            throw error
        }
        world.answered(process, answer, resource: resource, now: context.clock.now.sinceOrigin)
        switch answer.ending {
        case .served:
            return Response(status: .ok)
        case .refused:
            return Response(status: refusal)
        case .throttled:
            return Response(status: .tooManyRequests, fields: [.retryAfter: "\(answer.advice)"])
        case .unavailable:
            return Response(status: .serviceUnavailable, fields: [.retryAfter: "\(answer.advice)"])
        case .timedOut:
            throw ServiceError(.timeout, "The simulated server did not answer in time.", progress: .bodySent)
        }
    }
}
