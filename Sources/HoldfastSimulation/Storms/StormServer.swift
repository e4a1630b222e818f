// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

/// The server of a scenario: workers, one queue, exponential service, and the faults.
///
/// A client that gives up does not free its worker: the work is done for nobody. That is what lets naive retries keep a
/// server down after its fault is over.
struct StormServer {
    /// How a request ends for its sender.
    enum Ending: UInt8 {
        case served, refused, throttled, timedOut, unavailable
    }

    /// When a request ends for its sender, and how.
    struct Answer {
        let time: Duration
        let ending: Ending
        /// The whole seconds of Retry-After.
        var advice: Int = 0
    }

    /// How long a refusal takes.
    static let refusalTime: Duration = .milliseconds(5)

    /// Requests served after their sender had given up.
    private(set) var wasted = 0
    private let server: StormScenario.Server
    private let maxWait: Duration
    private let faults: [StormFault]
    private var numbers: SimulationNumbers
    private var idle: Int
    private var workers = EventQueue<Void>()

    init(_ scenario: StormScenario, seed: UInt64) {
        server = scenario.server
        maxWait = Duration(boundedSeconds: scenario.server.maxWait)
        faults = scenario.faults
        numbers = SimulationNumbers(seed: seed)
        idle = scenario.server.workers
    }

    /// Takes a request.
    ///
    /// - Parameters:
    ///   - now: the time, never less than before.
    ///   - limit: when its sender gives up; nil: never.
    ///   - resource: what it asks for.
    ///   - attempt: which attempt of its call it is; the first is 1.
    mutating func submit(now: Duration, limit: Duration?, resource: Int = 0, attempt: Int = 1) -> Answer {
        var factor = 1.0
        let seconds = now.doubleSeconds
        for fault in faults where fault.isActive(at: seconds, for: resource) {
            if fault.share < 1, numbers.uniform() >= fault.share { continue }
            switch fault.kind {
            case .down: return turnedAway(.refused, now, limit)
            case .err: if numbers.uniform() < fault.amount { return turnedAway(.refused, now, limit) }
            case .once: if attempt == 1 { return turnedAway(.refused, now, limit) }
            case .throttle, .unavailable:
                let ending: Ending = fault.kind == .throttle ? .throttled : .unavailable
                return turnedAway(ending, now, limit, advice: Int(max(0, min(fault.amount, 86_400))))
            case .slow: factor *= fault.amount
            default: break
            }
        }
        let free = idle > 0 ? now : max(now, workers.next?.time ?? now)
        if free - now > maxWait { return turnedAway(.refused, now, limit) }
        if idle > 0 { idle -= 1 } else { _ = workers.removeNext() }
        let end = free + Duration(boundedSeconds: numbers.exponential(mean: server.mean * factor))
        workers.add((), at: end)
        if let limit, end > limit {
            wasted += 1
            return Answer(time: limit, ending: .timedOut)
        }
        return Answer(time: end, ending: .served)
    }

    /// Takes note that the sender of a request being served was stopped before its answer.
    mutating func abandon() {
        wasted += 1
    }

    private func turnedAway(_ ending: Ending, _ now: Duration, _ limit: Duration?, advice: Int = 0) -> Answer {
        let time = now + StormServer.refusalTime
        if let limit, limit < time { return Answer(time: limit, ending: .timedOut) }
        return Answer(time: time, ending: ending, advice: advice)
    }
}

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
