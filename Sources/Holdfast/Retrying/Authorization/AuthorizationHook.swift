// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

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
        // Beneath another pipeline the call may have begun at another origin.
        let first = context.isForeignHop ? nil : request.url
        guard context.options.bearsAuthorization, !isOwn, authorization.covers(request.url, first: first) else {
            return nil
        }
        if context.options.principal == nil { context.options.principal = authorization.principal }
        // Where the credential alone says whose call this is, the caches must see the one that will be sent.
        let credential =
            context.options.principal == nil
            ? try await authorization.credentialToSend(context) : authorization.current
        let fields = credential.issued.apply.map { request.fieldsChanged(by: $0) } ?? []
        context.authorized = AuthorizedCall(first: first, fields: fields)
        context.countAsCredentials(fields)
        return nil
    }
}

extension URLRequest {
    /// Applies a credential and tells the names of the fields that it added or changed.
    mutating func fieldsChanged(by apply: (inout URLRequest) -> Void) -> [String] {
        let before = allHTTPHeaderFields ?? [:]
        apply(&self)
        let after = allHTTPHeaderFields ?? [:]
        return after.keys.filter { after[$0] != before[$0] }
    }
}

extension CallContext {
    /// Counts what a credential has written among the fields that hold the call's credentials.
    mutating func countAsCredentials(_ fields: [String]) {
        for field in fields {
            guard let name = FieldName(field), name != .authorization, name != .cookie,
                !NonCredentialFields.contains(name), !options.credentialFields.contains(name)
            else { continue }
            options.credentialFields.append(name)
        }
    }
}

/// What is remembered of a call that bears the pipeline's credential.
struct AuthorizedCall: Sendable {
    /// Where it began.
    let first: URL?
    /// The fields that hold the credential; empty until one was applied.
    var fields: [String]
}
