// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
private import Synchronization

/// Runs `operation`, but no longer than until `deadline` on `clock`.
///
/// For operations that may ignore cancellation: neither the deadline nor cancellation of the caller waits until the operation
/// returns. It is cancelled, and a late result is passed to `discard`.
///
/// - Parameters:
///   - latest: asked when the deadline has come: the deadline as it is then; nil: there is none any more.
///   - failure: the error at the deadline.
/// - Throws: ``ServiceError`` `.timeout` at the deadline, `CancellationError` at once if the caller is cancelled, or the
///   operation's own errors.
package func withDeadline<Success: Sendable>(
    _ deadline: MonotonicInstant,
    on clock: any HoldfastClock,
    movedTo latest: @escaping @Sendable (MonotonicInstant) -> MonotonicInstant? = { $0 },
    failure: @autoclosure @escaping @Sendable () -> ServiceError = FailureMeaning.timeout.error(progress: .bodySent),
    discard: @escaping @Sendable (Success) -> Void,
    operation: @escaping @Sendable () async throws -> Success
) async throws -> Success {
    let race = Race<Success>(discard: discard)
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            guard race.begin(continuation) else { return }
            let runner = Task {
                do {
                    race.end(.success(try await operation()))
                } catch {
                    race.end(.failure(error))
                }
            }
            let timer = Task {
                do {
                    var end = deadline
                    while true {
                        try await clock.sleep(until: end)
                        guard let moved = latest(end) else { return }
                        if moved <= end { break }
                        end = moved
                    }
                    race.end(.failure(failure()))
                } catch {
                    // The timer was cancelled: the race is over.
                }
            }
            race.adopt([runner, timer])
        }
    } onCancel: {
        race.end(.failure(CancellationError()))
    }
}

/// Reads the content of a response, but no longer than until `deadline`.
///
/// - Parameter deadline: the end of the call; nil: never.
/// - Throws: ``ServiceError`` `.deadlineExceeded` at the deadline, `CancellationError` at once if the caller is cancelled, or the
///   errors of `take`.
package func takingContent<Taken: Sendable>(
    of response: Response,
    until deadline: CallDeadline?,
    on clock: any HoldfastClock,
    take: @escaping @Sendable () async throws -> Taken
) async throws -> Taken {
    // Content that has already arrived needs no race.
    guard let deadline, response.body.source != nil else { return try await take() }
    let result: Result<Taken, any Error>
    do {
        result = try await withDeadline(deadline.instant, on: clock, discard: { _ in }) {
            do {
                return .success(try await take())
            } catch {
                return .failure(error)
            }
        }
    } catch {
        response.body.discard()
        guard !error.isCancellation else { throw error }
        var error = ServiceError(
            .deadlineExceeded,
            deadline.limit.timedOut(
                "before all of its content had arrived",
                advice: "Allow more time, or request less."
            ),
            progress: .headReceived,
            response: response
        )
        error.attempts = response.attempts
        throw error
    }
    return try result.get()
}

/// The first of an operation, its timer and its caller's cancellation wins.
private final class Race<Success: Sendable>: Sendable {
    private enum State {
        case idle
        case running(CheckedContinuation<Success, any Error>, [Task<Void, Never>])
        case ended
    }

    private let state = Mutex(State.idle)
    private let discard: @Sendable (Success) -> Void

    init(discard: @escaping @Sendable (Success) -> Void) { self.discard = discard }

    /// Starts the race; false if the caller was already cancelled, in which case `continuation` has been resumed.
    func begin(_ continuation: CheckedContinuation<Success, any Error>) -> Bool {
        let begun: Bool = state.withLock { state in
            guard case .idle = state else { return false }
            state = .running(continuation, [])
            return true
        }
        if !begun { continuation.resume(throwing: CancellationError()) }
        return begun
    }

    /// Takes over the runners, to cancel them when the race ends, or at once if it has ended.
    func adopt(_ tasks: [Task<Void, Never>]) {
        let over: Bool = state.withLock { state in
            guard case .running(let continuation, _) = state else { return true }
            state = .running(continuation, tasks)
            return false
        }
        if over { for task in tasks { task.cancel() } }
    }

    func end(_ result: Result<Success, any Error>) {
        typealias Winner = (CheckedContinuation<Success, any Error>, [Task<Void, Never>])
        let (winner, late): (Winner?, Bool) = state.withLock { state in
            switch state {
            case .idle:
                state = .ended
                return (nil, false)
            case .running(let continuation, let tasks):
                state = .ended
                return ((continuation, tasks), false)
            case .ended:
                return (nil, true)
            }
        }
        if let (continuation, tasks) = winner {
            continuation.resume(with: result)
            for task in tasks { task.cancel() }
        } else if late, case .success(let value) = result {
            discard(value)
        }
    }
}

/// A limit for the time of a call or of an attempt: how long it is, and which setting it comes from.
package struct TimeLimit: Sendable, CustomStringConvertible {
    /// A setting, as it is written in code.
    package enum Setting: String, Sendable {
        case callOptions = "CallOptions.timeout"
        case pipeline = "PipelineConfiguration.callTimeout"
        case rules = "RetryRules.callTimeout"
        case attempts = "PipelineConfiguration.attemptTimeout"
        case attemptsOfRules = "RetryRules.attemptTimeout"
        case request = "Request.timeout"
        case resource = "URLSessionConfiguration.timeoutIntervalForResource"
        case argument = "timeout"
    }

    package let duration: Duration
    package let setting: Setting

    /// A limit from a setting.
    package init(_ duration: Duration, setting: Setting) {
        self.duration = duration
        self.setting = setting
    }

    /// The length and the setting: "10.0 seconds (`CallOptions.timeout`)".
    package var description: String { "\(duration) (`\(setting.rawValue)`)" }
}

/// When a call ends, and because of which limit; nil if that is not known.
package struct CallDeadline: Sendable {
    package let instant: MonotonicInstant
    package let limit: TimeLimit?

    package init(_ instant: MonotonicInstant, limit: TimeLimit?) {
        self.instant = instant
        self.limit = limit
    }
}

/// The time limits of a pipeline's calls.
struct TimeLimits: Sendable {
    /// ``PipelineConfiguration/callTimeout``.
    var callTimeout: Duration?
    /// ``PipelineConfiguration/attemptTimeout``.
    var attemptTimeout: Duration?
    var governance: Governance?

    /// The limit of a call with these options: its own, or the pipeline's, or that of its rules.
    func call(_ options: CallOptions) -> TimeLimit? {
        if let own = options.timeout { return options.timeLimit ?? TimeLimit(own, setting: .callOptions) }
        if let callTimeout { return TimeLimit(callTimeout, setting: .pipeline) }
        return governance?.rules(for: options)?.rules.callTimeout.map { TimeLimit($0, setting: .rules) }
    }

    /// The limit of one attempt of a call with these options: that of its rules, or the pipeline's.
    func attempt(_ options: CallOptions) -> TimeLimit? {
        if let limit = governance?.rules(for: options)?.rules.attemptTimeout {
            return TimeLimit(limit, setting: .attemptsOfRules)
        }
        return attemptTimeout.map { TimeLimit($0, setting: .attempts) }
    }
}

/// What is said of the limits that end calls and attempts.
extension CallContext {
    /// The limit of the call; nil if there is none, or if its deadline comes from another call.
    var callLimit: TimeLimit? {
        guard deadline != nil, !returnsRedirects, !sharesDeadline else { return nil }
        return timeLimits.call(options)
    }

    /// Runs `operation`, but no longer than until the deadline, which moves if another call joins the exchange meanwhile.
    ///
    /// - Throws: `failure` at the deadline; otherwise as ``withDeadline(_:on:movedTo:failure:discard:operation:)``.
    func beforeDeadline<Success: Sendable>(
        failure: @autoclosure @escaping @Sendable () -> ServiceError = FailureMeaning.timeout.error(progress: .notSent),
        operation: @escaping @Sendable () async throws -> Success
    ) async throws -> Success {
        guard let deadline else { return try await operation() }
        return try await withDeadline(
            deadline,
            on: clock,
            movedTo: { _ in self.deadline },
            failure: failure(),
            discard: { _ in },
            operation: operation
        )
    }

    /// The error of the call if its deadline passes.
    ///
    /// - Parameters:
    ///   - moment: what had not happened or not ended, such as "before a response arrived".
    ///   - advice: what to do.
    func deadlineExceeded(
        _ moment: String = "before a response arrived",
        advice: String = "Allow more time, or see in `attempts` what took so long.",
        cause: (any Error)? = nil,
        progress: TransportProgress
    ) -> ServiceError {
        ServiceError(
            .deadlineExceeded,
            callLimit.timedOut(moment, advice: advice),
            cause: cause,
            progress: progress
        )
    }

    /// The error of an attempt that did not have its response head by ``attemptDeadline``.
    package func attemptTimeout(progress: TransportProgress, connectionReused: Bool = false) -> ServiceError {
        var message = FailureMeaning.timeout.message
        if !attemptIsCut, let limit = timeLimits.attempt(options) {
            message =
                "The server did not respond within \(limit). Allow more time, or find out why the server is slow."
        } else if attemptIsCut, let limit = callLimit {
            message =
                "The server did not respond before the call's limit of \(limit). Allow more time, or find out why the server is "
                + "slow."
        }
        return FailureMeaning(code: .timeout, message: message)
            .error(progress: progress, connectionReused: connectionReused)
    }
}

extension TimeLimit? {
    /// The text of a call's end: the limit if it is known, when it ended the call, and what to do.
    package func timedOut(_ moment: String, advice: String) -> String {
        let after = map { " after \($0)," } ?? ""
        return "The call timed out\(after) \(moment). \(advice)"
    }
}
