// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// One hop of a call that bears the pipeline's credential: what was sent with it, and what follows a refusal.
struct AuthorizedHop {
    /// What follows a response.
    enum FollowUp {
        /// The same request with a newer credential, once.
        case resend
        /// The response is final, for this reason.
        case stop(StopReason)
        /// The call ends with this error.
        case fail(any Error)
    }

    private let authorization: AuthorizationRefresh
    private let isCovered: Bool
    private let url: URL?
    private var version = 0
    private var hasResent = false

    /// Nil where the call does not bear the pipeline's credential: it has its own, began elsewhere, or is the refresh.
    init?(_ authorization: AuthorizationRefresh?, _ request: URLRequest, _ context: CallContext) {
        guard let authorization, let call = context.authorized else { return nil }
        self.authorization = authorization
        isCovered = authorization.covers(request.url, first: call.first)
        url = request.url
    }

    /// Puts the current credential into an attempt, or takes it out of one that a redirect led elsewhere.
    ///
    /// - Throws: ``ServiceError`` `.authorizationFailed` where there is none and none could be had, `.deadlineExceeded`,
    ///   `CancellationError`.
    mutating func apply(to request: inout URLRequest, _ context: inout CallContext) async throws {
        guard isCovered else {
            for name in context.authorized?.fields ?? [] { request.setValue(nil, forHTTPHeaderField: name) }
            return
        }
        let credential = try await authorization.credentialToSend(context)
        version = credential.version
        guard let apply = credential.issued.apply else { return }
        guard context.authorized?.fields.isEmpty ?? false else { return apply(&request) }
        // There was none when the call began, so which fields hold it shows only now.
        let fields = request.fieldsChanged(by: apply)
        context.authorized?.fields = fields
        context.countAsCredentials(fields)
    }

    /// Looks at the response to an attempt; nil where it says nothing against the credential.
    ///
    /// - Parameters:
    ///   - response: what came; detached from its connection where a credential is waited for.
    ///   - isWhole: whether the content can be sent again.
    mutating func followUp(_ response: inout Response, isWhole: Bool, _ context: CallContext) async -> FollowUp? {
        guard isCovered else { return nil }
        guard authorization.isRefusal(response.status) else {
            if response.status.rawValue < 400 { authorization.noteAccepted(version, by: url) }
            return nil
        }
        if hasResent { authorization.noteRefused(version, by: url, now: context.clock.now) }
        guard !hasResent, authorization.isMendable(version, for: url, context) else { return .stop(.unauthorized) }
        // The refresh may go to the same origin, and need what this response holds.
        context.detach(&response)
        do {
            _ = try await authorization.credential(newerThan: version, context)
        } catch {
            if error.isCancellation {
                response.body.discard()
                return .fail(CancellationError())
            }
            return .fail(AuthorizationRefresh.reported(error, response))
        }
        // What was refreshed serves the next call, even where this one cannot be sent again.
        guard isWhole else { return .stop(.notReplayable) }
        hasResent = true
        response.body.discard()
        return .resend
    }
}
