// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

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
