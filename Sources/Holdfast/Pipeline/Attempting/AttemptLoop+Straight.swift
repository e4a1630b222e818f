// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// An attempt and what is put down of it.
struct MadeAttempt {
    let result: Result<Response, any Error>
    let record: AttemptRecord
}

/// The attempt that nothing governs, as most are; what follows a failure is the loop's, as with any other.
extension AttemptLoop {
    /// Makes the first attempt of a call without rules, steps, conditions and deadline, which nobody observes.
    func straightAttempt(_ request: URLRequest, _ context: inout CallContext) async -> MadeAttempt {
        context.attempt = 1
        context.wantsNewConnection = false
        context.attemptIsCut = false
        let clock = context.clock
        let start = clock.now
        context.attemptDeadline = attemptTimeout.map { start.advanced(by: $0) }
        do {
            try Task.checkCancellation()
            context.exchange = SentExchange(
                request: request,
                presented: context.presented(by: request),
                requestTime: clock.timestamp
            )
            var response = try await transport.send(request, body: context.body, context: context)
            arrive(&response, request, &context)
            let record = AttemptRecord(
                number: 1,
                start: start,
                end: clock.now,
                status: response.status,
                beneath: response.attempts
            )
            if response.status.rawValue < 400 {
                RetryScope.current?.ended(request, exhausted: false)
                response.attempts = [record]
                if case .network = response.source { response.source = .network(attempts: 1) }
            }
            return MadeAttempt(result: .success(response), record: record)
        } catch {
            let known = error as? ServiceError
            let record = AttemptRecord(
                number: 1,
                start: start,
                end: clock.now,
                errorCode: known?.code ?? .other,
                progress: known?.progress,
                beneath: known?.attempts ?? []
            )
            return MadeAttempt(result: .failure(error), record: record)
        }
    }

    /// Puts down on a response when it was asked for and came, and what it answers.
    func arrive(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) {
        let responseTime = context.clock.timestamp
        context.exchange?.responseTime = responseTime
        // A transport that sent a later copy says itself when; what a store beneath remembers is older than the attempt.
        if let sent = context.exchange?.requestTime {
            response.requestTime = response.requestTime.map { max($0, sent) } ?? sent
        }
        response.responseTime = responseTime
        if response.url == nil { response.url = request.url }
        if case .unknown = response.presentation, let presented = context.exchange?.presented {
            response.presentation = .presented(presented)
        }
    }
}
