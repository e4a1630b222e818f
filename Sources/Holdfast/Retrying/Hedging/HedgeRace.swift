// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// One request and its copies, of which one wins: driven by the caller's own task.
///
/// Copies run in tasks of their own, so that one that does not heed its cancellation holds back neither the winner nor the
/// caller; whatever it still brings is discarded.
struct HedgeRace {
    let transport: any Transport
    let request: URLRequest
    let body: RequestBody
    let context: CallContext
    let judge: HedgeJudge
    let pace: HedgePace
    let account: RetryAccount?
    var plan: HedgePlan

    /// One copy: what it was paid with, and how it went.
    private struct Copy {
        let task: Task<Void, Never>
        let start: MonotonicInstant
        let sentAt: Timestamp
        var grant: RetryGrant?
        var end: MonotonicInstant?
        var status: StatusCode?
        var errorCode: ServiceError.Code?
    }

    /// What is found out on the way.
    private struct Course {
        var plan: HedgePlan
        var copies: [Copy] = []
        var timer: Task<Void, Never>?
        var wasLate = false
        var firstSucceeded: Bool?
    }

    func run() async throws -> Response {
        try Task.checkCancellation()
        let mailbox = HedgeMailbox()
        return try await withTaskCancellationHandler {
            var course = Course(plan: plan)
            let result = await run(&course, mailbox)
            course.timer?.cancel()
            mailbox.close()
            for copy in course.copies { copy.task.cancel() }
            settle(course, result)
            return try finished(result, course)
        } onCancel: {
            mailbox.post(.cancelled)
        }
    }

    private func run(_ course: inout Course, _ mailbox: HedgeMailbox) async -> Result<Response, any Error> {
        launch(&course, mailbox, grant: nil)
        while true {
            switch await mailbox.next() {
            case .cancelled:
                return .failure(CancellationError())
            case .due:
                hedge(&course, mailbox)
            case .ended(let number, let result, let end):
                close(number, result, end, &course)
                guard case .fails(let pushback) = judge.verdict(on: result) else {
                    return stamped(result, number, course)
                }
                course.plan.copyFailed(pushback: pushback, now: end.sinceOrigin)
                if course.plan.inFlight == 0 { return stamped(result, number, course) }
                if case .success(let response) = result { response.body.discard() }
                setTimer(&course, mailbox)
            }
        }
    }

    /// Sends a copy, and sees to the time of the next.
    private func launch(_ course: inout Course, _ mailbox: HedgeMailbox, grant: RetryGrant?) {
        let number = course.copies.count
        let now = context.clock.now
        let task = context.background.start { [transport, request, body, context] in
            let result: Result<Response, any Error>
            do {
                result = .success(try await transport.send(request, body: body, context: context))
            } catch {
                result = .failure(error)
            }
            // The first is the attempt itself, whose end the loop tells.
            if number > 0 { context.tellEnd(ofCopy: result, since: now) }
            mailbox.post(.ended(copy: number, result, at: context.clock.now))
        }
        course.copies.append(Copy(task: task, start: now, sentAt: context.clock.timestamp, grant: grant))
        course.plan.copySent(now: now.sinceOrigin)
        setTimer(&course, mailbox)
    }

    /// Sends the copy that is due, if it may be and is paid for.
    private func hedge(_ course: inout Course, _ mailbox: HedgeMailbox) {
        let now = context.clock.now
        guard let due = course.plan.nextSend, due <= now.sinceOrigin else { return setTimer(&course, mailbox) }
        let isFirst = !course.wasLate
        course.wasLate = true
        guard pace.permitHedge(isFirst: isFirst) else { return course.plan.stop() }
        var grant: RetryGrant?
        if let account {
            // What was taken above goes back where this refuses, so that neither balance ever leaks.
            guard !account.isClosed(for: request, now: now), let granted = account.permitHedge(now: now) else {
                pace.giveBack()
                return course.plan.stop()
            }
            grant = granted
        }
        context.emit(.hedgeStarted) { event in
            event.attempt = context.attempt
            event.delay = course.copies.first?.start.duration(to: now)
        }
        launch(&course, mailbox, grant: grant)
    }

    private func setTimer(_ course: inout Course, _ mailbox: HedgeMailbox) {
        course.timer?.cancel()
        course.timer = nil
        guard let due = course.plan.nextSend.map(MonotonicInstant.init(sinceOrigin:)) else { return }
        // A copy that could not be there before the deadline is not worth a timer.
        if let deadline = context.attemptDeadline, deadline <= due { return course.plan.stop() }
        guard due > context.clock.now else { return mailbox.post(.due) }
        course.timer = context.background.start { [context] in
            do {
                try await context.clock.sleep(until: due)
                mailbox.post(.due)
            } catch {
                // The timer was cancelled: another one runs, or the race is over.
            }
        }
    }

    private func close(
        _ number: Int,
        _ result: Result<Response, any Error>,
        _ end: MonotonicInstant,
        _ course: inout Course
    ) {
        course.copies[number].end = end
        switch result {
        case .success(let response): course.copies[number].status = response.status
        case .failure(let error): course.copies[number].errorCode = (error as? ServiceError)?.code ?? .other
        }
        let succeeded = judge.succeeded(result)
        if number == 0 { course.firstSucceeded = succeeded }
        if let grant = course.copies[number].grant {
            account?.ended(grant, succeeded: succeeded ?? true, now: end)
            course.copies[number].grant = nil
        }
    }

    /// Measures the first copy, and ends what the others were granted: exactly once each.
    private func settle(_ course: Course, _ result: Result<Response, any Error>) {
        let now = context.clock.now
        let succeeded = judge.succeeded(result)
        for copy in course.copies {
            guard let grant = copy.grant else { continue }
            if let succeeded {
                account?.ended(grant, succeeded: succeeded, now: now)
            } else {
                account?.giveBack(grant, now: now)
            }
        }
        guard let first = course.copies.first else { return }
        if let end = first.end {
            guard let firstSucceeded = course.firstSucceeded else { return }
            let length = first.start.duration(to: end)
            pace.attemptEnded(length: length, succeeded: firstSucceeded, wasLate: course.wasLate, now: end)
        } else if let succeeded {
            let length = first.start.duration(to: now)
            pace.attemptEnded(length: length, succeeded: succeeded, wasLate: course.wasLate, now: now)
        }
    }

    /// The result of a copy with the time at which that copy was sent: an Age is reckoned from it (RFC 9111 §4.2.3).
    private func stamped(
        _ result: Result<Response, any Error>,
        _ number: Int,
        _ course: Course
    ) -> Result<Response, any Error> {
        guard case .success(var response) = result else { return result }
        response.requestTime = course.copies[number].sentAt
        return .success(response)
    }

    private func finished(_ result: Result<Response, any Error>, _ course: Course) throws -> Response {
        guard course.copies.count > 1 else { return try result.get() }
        let now = context.clock.now
        let records = course.copies.enumerated().map { index, copy in
            AttemptRecord(
                number: index + 1,
                start: copy.start,
                end: copy.end ?? now,
                status: copy.status,
                errorCode: copy.errorCode
            )
        }
        switch result {
        case .success(var response):
            response.attempts = records
            return response
        case .failure(var error as ServiceError):
            error.attempts = records
            throw error
        case .failure(let error):
            throw error
        }
    }
}

extension CallContext {
    /// Tells the observers how a further copy ended.
    fileprivate func tellEnd(ofCopy result: Result<Response, any Error>, since start: MonotonicInstant) {
        emit(.hedgeEnded) { event in
            event.attempt = attempt
            event.delay = start.duration(to: clock.now)
            switch result {
            case .success(let response): event.status = response.status
            case .failure(let error): event.describe(error)
            }
        }
    }
}
