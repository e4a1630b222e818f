// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Applies the caller's acceptance to the final response, between the `.message` hooks and the `.call` hooks.
///
/// A rejected stored response is removed, and the call is sent once more, bypassing the store.
struct AcceptanceStage<Next: Exchanging>: Exchanging {
    /// The position of the first hook below, whose state belongs to one exchange.
    let firstHookBelow: Int
    let next: Next

    func exchange(_ request: URLRequest, context: inout CallContext) async throws -> Response {
        guard !context.options.areDefault, let acceptance = context.options.acceptance else {
            return try await next.exchange(request, context: &context)
        }
        let start = CallStart(context)
        let first = try await checked(request, acceptance: acceptance, context: &context)
        switch first {
        case .success(let response): return response
        case .failure(let refusal):
            guard !refusal.error.isTheCallersOwn, let origin = refusal.response?.storedOrigin else {
                throw refusal.error
            }
            await origin.remove()
            let maySend = !context.options.cache.onlyIfCached && request.cachePolicy != .returnCacheDataDontLoad
            start.restore(in: &context)
            // What an unsafe request did must not be done twice (RFC 9110 §9.2.2).
            guard maySend, !context.hasAnsweredWrite, context.body.isWhole else { throw refusal.error }
            context.options.cache.reload = true
            context.exchange = nil
            context.forgetHookStates(from: firstHookBelow)
            return try await checked(request, acceptance: acceptance, context: &context).mapError(\.error).get()
        }
    }

    private struct Refusal: Error {
        let error: any Error
        let response: Response?
    }

    private func checked(
        _ request: URLRequest,
        acceptance: Acceptance,
        context: inout CallContext
    ) async throws -> Result<Response, Refusal> {
        let verdict = Verdict()
        context.verdict = verdict
        defer { context.verdict = nil }
        var response: Response
        do {
            response = try await next.exchange(request, context: &context)
            // The acceptance reads the content before the pipeline could report it. A stored response may be rejected
            // and replaced, and a progress ends once.
            if let progress = context.options.progress, response.storedOrigin == nil {
                response = response.reporting(to: progress)
            }
        } catch {
            // If the caller merely left, nothing was rejected: responses that others still wait for may be stored without its
            // verdict.
            await verdict.decide(error.isLeaving)
            throw error
        }
        let unchecked = response
        do {
            try await acceptance.check(&response)
            await verdict.decide(true)
            return .success(response)
        } catch {
            await verdict.decide(false)
            if error.isCancellation { throw error }
            return .failure(Refusal(error: error, response: unchecked))
        }
    }
}

/// What redirects change in a context, as it was before the first hop: a call that is sent again begins there.
private struct CallStart {
    private let body: RequestBody
    private let redirectCount: Int
    private let isForeignHop: Bool
    private let withholdsAdditions: Bool
    private let subject: CallSubject?

    init(_ context: CallContext) {
        body = context.body
        redirectCount = context.redirectCount
        isForeignHop = context.isForeignHop
        withholdsAdditions = context.withholdsAdditions
        subject = context.subject
    }

    func restore(in context: inout CallContext) {
        // If it is still there, the attempts may have made it one that can be read again.
        if context.body.isNone { context.body = body }
        context.redirectCount = redirectCount
        context.isForeignHop = isForeignHop
        context.withholdsAdditions = withholdsAdditions
        context.subject = subject
    }
}

extension Error {
    /// Whether the caller stopped waiting for the response, so that this says nothing about it.
    fileprivate var isLeaving: Bool { isCancellation || (self as? ServiceError)?.code == .deadlineExceeded }

    /// Whether this says nothing about the response: the caller stopped waiting, its own file could not be written, or the response
    /// is longer than it wants to read.
    fileprivate var isTheCallersOwn: Bool {
        let error = self as? ServiceError
        return isLeaving || error?.code == .bodyTooLarge || error?.cause is FileSystemError
    }
}
