// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// What the observers are told of the loop's decisions.
extension AttemptLoop {
    /// Notes and tells that no further attempt follows.
    func stop(
        _ reason: StopReason,
        retryAfter: Duration? = nil,
        _ course: inout AttemptCourse,
        _ context: CallContext
    ) {
        course.stops(for: reason, retryAfter: retryAfter)
        context.emit(.retriesStopped) { [last = course.records.last] event in event.describe(last, nil) }
    }

    /// Notes and tells that another attempt follows that no retrier was asked about.
    func resend(_ cause: String, after delay: Duration = .zero, _ course: inout AttemptCourse, _ context: CallContext) {
        course.resendsAtOnce(after: delay)
        context.emit(.resendScheduled) { event in
            event.attempt = context.attempt
            event.delay = delay
            event.detail = cause
        }
    }
}

extension ServiceEvent {
    /// Puts down an error and what it says of its exchange.
    mutating func describe(_ error: any Error) {
        self.error = error
        guard let error = error as? ServiceError else { return }
        if status == nil { status = error.response?.status }
        progress = error.progress
        if error.connectionReused { connectionReused = true }
        retryAfter = error.retryAfter
        stopReason = error.attempts.last?.stopReason
    }

    /// Puts down what came of an attempt.
    mutating func describe(_ record: AttemptRecord?, _ error: (any Error)?) {
        if let error { describe(error) }
        guard let record else { return }
        attempt = record.number
        status = record.status
        progress = record.progress
        retryClass = record.retryClass
        retryAfter = record.retryAfter
        stopReason = record.stopReason
    }
}
