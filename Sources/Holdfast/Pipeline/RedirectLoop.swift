// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    package import FoundationNetworking
#else
    package import Foundation
#endif

/// Follows redirects hop by hop, so that each hop is looked up, stored and retried under its own URI (RFC 9110 §15.4).
struct RedirectLoop<Next: Exchanging>: Exchanging {
    let policy: RedirectPolicy
    /// The other origins to which additions of hooks and prepare steps may be sent.
    let trustedOrigins: CredentialScope
    /// Its rules limit the wait before a redirect; without a governor there are none.
    let governance: Governance
    /// The position of the first hook below, whose state belongs to one hop.
    let firstHookBelow: Int
    let next: Next

    func exchange(_ first: URLRequest, context: inout CallContext) async throws -> Response {
        var request = first
        var earlier: [AttemptRecord] = []
        while true {
            var response = try await exchangeHop(request, of: first, after: earlier, context: &context)
            if !context.options.areDefault { context.options.cookies?.keep(answer: response) }
            guard response.status.isRedirection, policy.limit > 0, !context.returnsRedirects,
                var hop = nextHop(after: response, to: request, context)
            else { return response }
            guard context.redirectCount < policy.limit else {
                response.body.discard()
                var error = ServiceError(
                    .tooManyRedirects,
                    "The chain of redirects is longer than \(policy.limit) hops and probably a loop; "
                        + "ask for the resource's own URL or raise the limit.",
                    progress: .headReceived,
                    response: response
                )
                error.attempts = earlier + response.attempts
                throw error
            }
            let wait: Duration
            switch decideFollowing(response, context: context) {
            case .retry(let delay): wait = delay
            case .stop(let reason):
                var handedUp = response
                if !handedUp.attempts.isEmpty { handedUp.attempts[handedUp.attempts.count - 1].stopReason = reason }
                return handedUp
            }
            let end = context.clock.now.advanced(by: wait)
            context.detach(&response)
            context.emit(.redirected) { event in
                event.status = response.status
                event.detail = hop.redirection.target.origin
                event.redirectTarget = hop.request.url.map { RedactedURL($0) }
                if wait > .zero { event.delay = wait }
            }
            if wait > .zero {
                do {
                    try await context.clock.sleep(until: end)
                } catch {
                    response.body.discard()
                    throw error
                }
            }
            context.redirectCount += 1
            earlier += response.attempts
            context.exchange = nil
            if !hop.redirection.keepsBody {
                if !context.method(of: request).isSafe { context.hasAnsweredWrite = true }
                context.body = .none
            }
            context.forgetHookStates(from: firstHookBelow)
            context.enterHop(to: hop.request, of: first, trustedOrigins: trustedOrigins)
            if context.withholdsAdditions, let fields = context.callerFields {
                hop.request.withholdFields(addedTo: fields)
            }
            request = hop.request
            context.options.cookies?.renew(in: &request, isForeignHop: context.isForeignHop)
            if let subject = context.subject {
                context.subject = CallSubject(request, context: context, operationName: subject.operationName)
            }
        }
    }

    /// One hop. If it fails, the earlier hops were still answered, and the caller of an unsafe request must not conclude that it
    /// was never sent.
    private func exchangeHop(
        _ request: URLRequest,
        of first: URLRequest,
        after earlier: [AttemptRecord],
        context: inout CallContext
    ) async throws -> Response {
        do {
            return try await next.exchange(request, context: &context)
        } catch var error as ServiceError {
            if context.redirectCount > 0 {
                error.attempts = earlier + error.attempts
                if !context.method(of: first).isSafe {
                    error.progress = max(error.progress ?? .headReceived, .headReceived)
                }
            }
            throw error.naming(CallSubject(request, context: context, operationName: nil))
        }
    }

    /// Whether the next hop is sent, and after which wait (RFC 9110 §10.2.3).
    private func decideFollowing(_ response: Response, context: CallContext) -> RetryDecision {
        // A factory of the call without rules waits for nothing.
        let hasRules = context.options.retryRules != nil || governance.factory(for: context.options).governor != nil
        guard hasRules, response.fields.contains(.retryAfter),
            let rules = governance.rules(for: context.options)?.rules,
            var generator = governance.governor(for: context.options)?.generator
        else { return .retryNow }
        return rules.decideFollowing(
            response.headForRetrying,
            receivedAt: context.clock.timestamp,
            timeLeft: context.deadline.map { context.clock.now.duration(to: $0) },
            using: &generator
        )
    }

    private func nextHop(
        after response: Response,
        to request: URLRequest,
        _ context: CallContext
    ) -> (redirection: Redirection, request: URLRequest)? {
        guard let head = context.head(of: request) else { return nil }
        guard let redirection = Redirection.next(after: response.head, to: head),
            !redirection.keepsBody
                || context.body.isReplayable && !context.body.wouldBeExposed(by: redirection, from: head),
            let url = URL(string: redirection.location)
        else { return nil }
        var following = request
        following.url = url
        if redirection.method != head.method { following.httpMethod = redirection.method.rawValue }
        if !redirection.keepsBody {
            following.httpBody = nil
            following.httpBodyStream = nil
        }
        following.leaveBehind(redirection, from: head.fields, credentialFields: context.options.credentialFields)
        return (redirection, following)
    }
}

extension CallContext {
    /// Records whether a hop goes to another origin than the one where the call began, and whether that one is trusted.
    fileprivate mutating func enterHop(
        to request: URLRequest,
        of first: URLRequest,
        trustedOrigins: CredentialScope
    ) {
        let start = first.url.flatMap { try? TargetURI($0.absoluteString) }
        let target = request.url.flatMap { try? TargetURI($0.absoluteString) }
        let isAtStart = if let start, let target { target.isSameOrigin(as: start) } else { false }
        isForeignHop = options.isForeignHop || !isAtStart
        withholdsAdditions = withholds(from: request, trustedOrigins: trustedOrigins)
    }

    /// Whether the additions of a pipeline's hooks and steps to `request` are withheld from its origin.
    func withholds(from request: URLRequest, trustedOrigins: CredentialScope) -> Bool {
        isForeignHop && !trustedOrigins.allows(request.url, first: request.url)
    }
}

extension RequestBody {
    /// Whether a redirect asks to send content unencrypted that was sent encrypted.
    fileprivate func wouldBeExposed(by redirection: Redirection, from request: RequestHead) -> Bool {
        !isNone && request.target.scheme == "https" && redirection.target.scheme != "https"
    }
}

extension URLRequest {
    /// Removes the fields that must not follow a redirect, including credentials in custom fields.
    ///
    /// - Parameters:
    ///   - fields: those of the request that was redirected.
    ///   - credentialFields: fields other than Authorization and Cookie that contain a credential.
    package mutating func leaveBehind(
        _ redirection: Redirection,
        from fields: HeaderFields,
        credentialFields: [FieldName]
    ) {
        let kept = redirection.fields(from: fields)
        for line in fields where !kept.contains(line.name) {
            setValue(nil, forHTTPHeaderField: line.name.rawName)
        }
        guard redirection.crossesOrigin else { return }
        for name in credentialFields { setValue(nil, forHTTPHeaderField: name.rawName) }
    }
}

extension RequestHead {
    /// The head of a URLRequest as the caller wrote it; nil if its URL is not a valid http or https URI.
    package init?(_ request: URLRequest, fields: HeaderFields? = nil) {
        guard let text = request.url?.absoluteString, let target = try? TargetURI(text) else { return nil }
        self.init(
            method: RequestMethod(request),
            target: target,
            fields: fields ?? HeaderFields(request.allHTTPHeaderFields ?? [:])
        )
    }
}

extension RequestMethod {
    /// The method of a URLRequest; GET if it has none. Invalid text stays as it is, and so counts as unsafe.
    init(_ request: URLRequest) { self.init(rawValue: request.httpMethod ?? "GET") }
}
