// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Puts the credential into a call above the caches, which key by it; the attempts bring it up to date.
///
/// Stands beneath all other hooks of scope `.call`, which may still change where the call goes.
struct AuthorizationHook: ServiceHook {
    private let authorization: AuthorizationRefresh

    init(_ authorization: AuthorizationRefresh) {
        self.authorization = authorization
    }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        let isOwn = request.value(forHTTPHeaderField: "Authorization") != nil
        guard context.options.bearsAuthorization, !isOwn, authorization.covers(request.url, first: request.url) else {
            return nil
        }
        if context.options.principal == nil { context.options.principal = authorization.principal }
        // Where the credential alone says whose call this is, the caches must see the one that will be sent.
        let credential =
            context.options.principal == nil
            ? try await authorization.credentialToSend(context) : authorization.current
        let before = request.allHTTPHeaderFields ?? [:]
        credential.issued.apply?(&request)
        let after = request.allHTTPHeaderFields ?? [:]
        context.authorized = AuthorizedCall(
            first: request.url,
            fields: after.keys.filter { after[$0] != before[$0] }
        )
        return nil
    }
}

/// What is remembered of a call that bears the pipeline's credential.
struct AuthorizedCall: Sendable {
    /// Where it began.
    let first: URL?
    /// The fields that hold the credential.
    let fields: [String]
}
