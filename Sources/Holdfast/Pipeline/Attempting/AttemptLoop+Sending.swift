// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// How one attempt is made.
extension AttemptLoop {
    /// The request as it goes out: edited by each `prepare` step, and with what the rules let the server know.
    func prepared(
        _ request: URLRequest,
        _ course: AttemptCourse,
        _ authorized: inout AuthorizedHop?,
        _ context: inout CallContext
    ) async throws -> PreparedRequest {
        try Task.checkCancellation()
        var prepared = request
        try await authorized?.apply(to: &prepared, &context)
        let announced = course.inForce?.rules.announce(context, on: &prepared)
        let unedited = context.withholdsAdditions ? prepared : nil
        for step in prepare {
            try await step(&prepared, context)
            if let unedited { prepared.withholdAdditions(to: unedited) }
        }
        for step in context.options.prepare {
            try await step(&prepared, context)
            // After each, so that a later step signs, or notes, what is sent.
            if let unedited { prepared.withholdAdditions(to: unedited) }
        }
        if !prepare.isEmpty || !context.options.prepare.isEmpty { try prepared.checkHead() }
        return PreparedRequest(request: prepared, announcedFields: announced)
    }

    func attempt(
        _ ready: PreparedRequest,
        _ course: AttemptCourse,
        _ context: inout CallContext
    ) async -> Result<Response, any Error> {
        let prepared = ready.request
        do {
            let limit = (course.inForce?.rules.attemptTimeout ?? attemptTimeout).map {
                context.clock.now.advanced(by: $0)
            }
            context.attemptDeadline = earlier(context.deadline, limit)
            context.attemptIsCut = context.attemptDeadline.map { $0 != limit } ?? false
            if let deadline = context.deadline, context.clock.now >= deadline { throw deadlineExceeded(cause: nil) }
            context.exchange = SentExchange(
                request: prepared,
                presented: context.presented(by: prepared),
                requestTime: context.clock.timestamp,
                announced: ready.announcedFields
            )
            context.emit(.attemptStarted) { $0.attempt = context.attempt }
            var response = try await send(prepared, course, context)
            arrive(&response, prepared, &context)
            context.options.cookies?.keep(received: response)
            response.body = response.body.announcingEnd(to: context)
            let isOwnPart = context.validation?.asksPart == true && response.status == .partialContent
            if let acceptance = context.options.acceptance, acceptance.judgesAttempts, response.status.isSuccessful,
                !isOwnPart
            {
                do {
                    try await acceptance.judge(&response)
                } catch var error as ServiceError {
                    // Whatever became of what the judge did, this request was answered.
                    error.progress = max(error.progress ?? .headReceived, .headReceived)
                    throw error
                }
            }
            return .success(response)
        } catch {
            return .failure(error)
        }
    }

    private func send(_ request: URLRequest, _ course: AttemptCourse, _ context: CallContext) async throws -> Response {
        guard let scope = course.scope else { return try await send(request, context) }
        scope.begin(request)
        return try await RetryScope.$current.withValue(scope) { try await send(request, context) }
    }

    private func send(_ request: URLRequest, _ context: CallContext) async throws -> Response {
        guard let deadline = context.attemptDeadline, !transport.enforcesDeadline else {
            return try await transport.send(request, body: context.body, context: context)
        }
        let transport = transport
        return try await withDeadline(deadline, on: context.clock, discard: { $0.body.discard() }) {
            try await transport.send(request, body: context.body, context: context)
        }
    }

    func record(
        of result: Result<Response, any Error>,
        start: MonotonicInstant,
        _ context: CallContext
    ) -> AttemptRecord {
        let end = context.clock.now
        let response = try? result.get()
        var error: (any Error)?
        if case .failure(let failure) = result { error = failure }
        context.emit(.attemptEnded) { event in
            event.attempt = context.attempt
            event.status = response?.status
            if let body = response?.body, body.source == nil { event.bytes = body.length ?? 0 }
            if let error { event.describe(error) }
            event.delay = start.duration(to: end)
        }
        return AttemptRecord(
            number: context.attempt,
            start: start,
            end: end,
            status: response?.status,
            errorCode: error.map { ($0 as? ServiceError)?.code ?? .other },
            progress: (error as? ServiceError)?.progress,
            beneath: response?.attempts ?? (error as? ServiceError)?.attempts ?? []
        )
    }

    /// The caller's own request, where a response answers nothing that a cache asked in its place: a response to somebody
    /// else's question must not be used, so it is asked once more as it came (RFC 9111 §4.3.3).
    func withoutConditions(
        _ request: URLRequest,
        after result: Result<Response, any Error>,
        _ context: inout CallContext
    ) -> URLRequest? {
        guard case .success(let response) = result, let validation = context.validation,
            !validation.isAnswered(response), context.body.isWhole
        else { return nil }
        context.validation = nil
        response.body.discard()
        var unconditional = request
        for name in validation.replaced {
            unconditional.setValue(validation.own[name], forHTTPHeaderField: name.rawName)
        }
        return unconditional
    }
}

extension URLRequest {
    /// Refuses fields that would be read as others, or as more than one (RFC 9110 §5.1, §5.5), and a port that is none, on which some
    /// clients end the process.
    ///
    /// Asked after prepare steps, and once more by the transports of this package, for what hooks and callers set.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent`.
    package func checkHead() throws {
        guard url?.port.map({ 1...65_535 ~= $0 }) ?? true else {
            throw ServiceError(.badRequest, "The URL's port is none; use 1 to 65535.", progress: .notSent)
        }
        for (name, value) in allHTTPHeaderFields ?? [:] {
            let isName = !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter)
            guard !isName || value.utf8.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) else { continue }
            let shown = isName ? "The value of the field \(name)" : "The name of a field"
            throw ServiceError(
                .badRequest,
                "\(shown) contains a character that no field may have, such as a line end; take it out of what a caller or a "
                    + "prepare step sets.",
                progress: .notSent
            )
        }
    }
}

/// A request as it goes out.
struct PreparedRequest {
    let request: URLRequest
    /// The fields that tell the server of the attempt and of the time left; nil where there are none.
    let announcedFields: [FieldName]?
}

extension RetryRules {
    /// Tells the server which attempt this is, and how much time is left, where the rules name fields for it.
    ///
    /// - Returns: the names of those fields that were set; nil where none was.
    fileprivate func announce(_ context: CallContext, on request: inout URLRequest) -> [FieldName]? {
        var announced: [FieldName]?
        if let attemptField, context.attempt > 1 {
            request.setValue(String(context.attempt), forHTTPHeaderField: attemptField.rawName)
            announced = [attemptField]
        }
        if let timeLeftField, let deadline = context.deadline {
            let left = context.clock.now.duration(to: deadline)
            let parts = min(max(left, .zero), .seconds(1 << 40)).components
            let milliseconds = parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
            request.setValue(String(milliseconds), forHTTPHeaderField: timeLeftField.rawName)
            announced = (announced ?? []) + [timeLeftField]
        }
        return announced
    }
}

private func earlier(_ first: MonotonicInstant?, _ second: MonotonicInstant?) -> MonotonicInstant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}

extension AttemptOutcome {
    init(_ result: Result<Response, any Error>) {
        switch result {
        case .success(let response): self = .response(response.headForRetrying)
        case .failure(let error): self = .failure(ServiceError.attemptFailure(of: error))
        }
    }
}
