// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics
private import Synchronization

/// The server of a scenario: workers, one queue, exponential service times, and the faults.
///
/// A client that gives up does not free its worker: the work is done for nobody. That is how naive retries keep a server down after
/// its fault is over.
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

    /// Requests served after their sender had given up, which it did after the warm-up.
    private(set) var wasted = 0
    private let warmUp: Duration
    private let server: StormScenario.Server
    private let maxWait: Duration
    private let faults: [StormFault]
    private var numbers: SimulationNumbers
    private var idle: Int
    private var workers = EventQueue<Void>()

    init(_ scenario: StormScenario, seed: UInt64) {
        server = scenario.server
        warmUp = Duration(boundedSeconds: scenario.warmUp)
        maxWait = Duration(boundedSeconds: scenario.server.maxWait)
        faults = scenario.faults
        numbers = SimulationNumbers(seed: seed)
        idle = scenario.server.workers
    }

    /// Receives a request.
    ///
    /// - Parameters:
    ///   - now: the time, never earlier than before.
    ///   - limit: when its sender gives up; nil: never.
    ///   - resource: the requested resource.
    ///   - attempt: which attempt of its call it is; the first is 1.
    mutating func submit(now: Duration, limit: Duration?, resource: Int = 0, attempt: Int = 1) -> Answer {
        var factor = 1.0
        let seconds = now.doubleSeconds
        for fault in faults where fault.isActive(at: seconds, for: resource) {
            if fault.share < 1, numbers.uniform() >= fault.share { continue }
            switch fault.kind {
            case .down: return turnedAway(.refused, now: now, limit: limit)
            case .err: if numbers.uniform() < fault.amount { return turnedAway(.refused, now: now, limit: limit) }
            case .once: if attempt == 1 { return turnedAway(.refused, now: now, limit: limit) }
            case .throttle, .unavailable:
                let ending: Ending = fault.kind == .throttle ? .throttled : .unavailable
                return turnedAway(ending, now: now, limit: limit, advice: Int(max(0, min(fault.amount, 86_400))))
            case .slow: factor *= fault.amount
            default: break
            }
        }
        let free = idle > 0 ? now : max(now, workers.next?.time ?? now)
        if free - now > maxWait { return turnedAway(.refused, now: now, limit: limit) }
        if idle > 0 { idle -= 1 } else { _ = workers.removeNext() }
        let end = free + Duration(boundedSeconds: numbers.exponential(mean: server.mean * factor))
        workers.add((), at: end)
        if let limit, end > limit {
            abandon(now: limit)
            return Answer(time: limit, ending: .timedOut)
        }
        return Answer(time: end, ending: .served)
    }

    /// Records that the sender of a request being served was stopped before its answer.
    mutating func abandon(now: Duration) {
        if now >= warmUp { wasted += 1 }
    }

    private func turnedAway(_ ending: Ending, now: Duration, limit: Duration?, advice: Int = 0) -> Answer {
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

/// The transport from one client process to the simulated server.
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
            world.stopped(process, answer: answer, now: context.clock.now.sinceOrigin)
            throw error
        }
        world.answered(process, answer: answer, resource: resource, now: context.clock.now.sinceOrigin)
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

/// What the calls of a run share: the server, and the record of events.
final class StormWorld: Sendable {
    /// A call from its start to its end.
    struct Call {
        let start: Duration
        let end: Duration
        let succeeded: Bool
        var resource = 0
    }

    /// The record of a run.
    struct Book {
        /// When each attempt was sent.
        var attempts: [Duration] = []
        /// The calls that ended, in the order of their ends.
        var calls: [Call] = []
        /// Calls that began.
        var begun = 0
        /// Refused attempts that were sent although their process had been told to wait; those after the warm-up.
        var earlySends = 0
        /// How long after the warm-up processes had been told to wait, summed over all of them.
        var closedTime: Duration = .zero
        /// Requests served after their sender had given up, which it did after the warm-up.
        var wasted = 0
        /// A hash of all events with their times and processes, by FNV-1a.
        var fingerprint: UInt64 = 0xCBF2_9CE4_8422_2325

        fileprivate mutating func note(_ event: Event, process: Int, at time: Duration) {
            let nanoseconds = UInt64(clamping: time.attoseconds / 1_000_000_000)
            for word in [nanoseconds, UInt64(process) << 8 | UInt64(event.rawValue)] {
                fingerprint = (fingerprint ^ word) &* 0x0000_0100_0000_01B3
                fingerprint ^= fingerprint >> 32
            }
        }
    }

    fileprivate enum Event: UInt8 {
        case callBegan = 1, sent, callSucceeded, callFailed, stopped
        case served = 16, refused, throttled, timedOut, unavailable
    }

    private struct State {
        var server: StormServer
        var book = Book()
        /// Until when each process has been told to wait.
        var closedUntil: [Duration]
        /// The same for one resource, by process and resource.
        var resourceClosedUntil: [Int: Duration] = [:]
    }

    private let state: Mutex<State>
    private let warmUp: Duration

    init(_ scenario: StormScenario, seed: UInt64) {
        warmUp = Duration(boundedSeconds: scenario.warmUp)
        state = Mutex(
            State(
                server: StormServer(scenario, seed: seed),
                closedUntil: Array(repeating: .zero, count: scenario.processes)
            )
        )
    }

    /// The record so far.
    var book: Book {
        state.withLock { state in
            var book = state.book
            book.wasted = state.server.wasted
            return book
        }
    }

    func callBegan(_ process: Int, now: Duration) {
        state.withLock { state in
            state.book.begun += 1
            state.book.note(.callBegan, process: process, at: now)
        }
    }

    func callEnded(_ process: Int, resource: Int, start: Duration, now: Duration, succeeded: Bool) {
        state.withLock { state in
            state.book.calls.append(Call(start: start, end: now, succeeded: succeeded, resource: resource))
            state.book.note(succeeded ? .callSucceeded : .callFailed, process: process, at: now)
        }
    }

    /// Sends an attempt.
    func submit(
        _ process: Int,
        resource: Int,
        attempt: Int,
        now: Duration,
        limit: Duration?
    ) -> StormServer.Answer {
        state.withLock { state in
            state.book.attempts.append(now)
            state.book.note(.sent, process: process, at: now)
            let closed = max(
                state.closedUntil[process],
                state.resourceClosedUntil[StormWorld.key(process: process, resource: resource)] ?? .zero
            )
            let answer = state.server.submit(now: now, limit: limit, resource: resource, attempt: attempt)
            // What the server served anyway was not too early.
            if now < closed, now >= warmUp, answer.ending != .served { state.book.earlySends += 1 }
            return answer
        }
    }

    /// Records that an attempt's answer arrived.
    func answered(_ process: Int, answer: StormServer.Answer, resource: Int, now: Duration) {
        state.withLock { state in
            let event: Event =
                switch answer.ending {
                case .served: .served
                case .refused: .refused
                case .throttled: .throttled
                case .timedOut: .timedOut
                case .unavailable: .unavailable
                }
            state.book.note(event, process: process, at: now)
            let asked = now + .seconds(answer.advice)
            let key = StormWorld.key(process: process, resource: resource)
            let closed: Duration
            switch answer.ending {
            case .throttled: closed = state.closedUntil[process]
            case .unavailable: closed = state.resourceClosedUntil[key] ?? .zero
            default: return
            }
            guard asked > closed else { return }
            state.book.closedTime += max(.zero, asked - max(now, closed, warmUp))
            if answer.ending == .throttled {
                state.closedUntil[process] = asked
            } else {
                state.resourceClosedUntil[key] = asked
            }
        }
    }

    private static func key(process: Int, resource: Int) -> Int { process * 1_000_000 + resource }

    /// Records that an attempt was stopped before its answer.
    func stopped(_ process: Int, answer: StormServer.Answer, now: Duration) {
        state.withLock { state in
            if answer.ending == .served { state.server.abandon(now: now) }
            state.book.note(.stopped, process: process, at: now)
        }
    }
}
