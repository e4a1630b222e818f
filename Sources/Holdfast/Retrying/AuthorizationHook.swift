// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Puts the credential into a call above the caches, which use it for their keys; the attempts update it.
///
/// It runs below all other hooks of scope `.call`, which may still change where the call goes.
struct AuthorizationHook: ServiceHook {
    private let authorization: AuthorizationRefresh

    init(_ authorization: AuthorizationRefresh) { self.authorization = authorization }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        let isOwn = request.field(.authorization) != nil
        // Below another pipeline, the call may have begun at another origin.
        let first = context.isForeignHop ? nil : request.url
        guard context.options.usesAuthorization, !isOwn, authorization.covers(request.url, first: first) else {
            return nil
        }
        if context.options.principal == nil { context.options.principal = authorization.principal }
        // If only the credential says whose call this is, the caches must see the one that will be sent.
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
    /// Applies a credential and returns the names of the fields that it added or changed.
    mutating func fieldsChanged(by apply: (inout URLRequest) -> Void) -> [String] {
        let before = allHTTPHeaderFields ?? [:]
        apply(&self)
        let after = allHTTPHeaderFields ?? [:]
        return after.keys.filter { after[$0] != before[$0] }
    }
}

extension CallContext {
    /// Counts the fields that a credential has written among those that contain the call's credentials.
    mutating func countAsCredentials(_ fields: [String]) {
        for field in fields {
            guard let name = FieldName(field), name != .authorization, name != .cookie,
                !NonCredentialFields.contains(name), !options.credentialFields.contains(name)
            else { continue }
            options.credentialFields.append(name)
        }
    }
}

/// What is remembered about a call with the pipeline's credential.
struct AuthorizedCall: Sendable {
    /// Where it began.
    let first: URL?
    /// The fields that contain the credential; empty until one was applied.
    var fields: [String]
}

/// One hop of a call with the pipeline's credential: what was sent with it, and what follows a rejection.
struct AuthorizedHop {
    /// What follows a response.
    enum FollowUp {
        /// The same request with a newer credential, once; the response is no longer needed.
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

    /// Nil if the call does not have the pipeline's credential: it has its own, began elsewhere, or is the refresh.
    init?(_ authorization: AuthorizationRefresh?, request: URLRequest, context: CallContext) {
        guard let authorization, let call = context.authorized else { return nil }
        self.authorization = authorization
        isCovered = authorization.covers(request.url, first: call.first)
        url = request.url
    }

    /// Puts the current credential into an attempt, or removes it from one that a redirect led elsewhere.
    ///
    /// - Throws: ``ServiceError`` `.authorizationFailed` if there is none and none could be obtained, `.deadlineExceeded`,
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
        // There was none when the call began, so only now is it known which fields contain it.
        let fields = request.fieldsChanged(by: apply)
        context.authorized?.fields = fields
        context.countAsCredentials(fields)
    }

    /// Examines the response to an attempt; nil if it does not reject the credential.
    ///
    /// - Parameters:
    ///   - response: the response; detached from its connection if a credential is awaited.
    ///   - isWhole: whether the content can be sent again.
    mutating func followUp(_ response: inout Response, isWhole: Bool, context: CallContext) async -> FollowUp? {
        guard isCovered else { return nil }
        guard authorization.isRefusal(response.status) else {
            if response.status.rawValue < 400 { authorization.noteAccepted(version, by: url) }
            return nil
        }
        if hasResent { authorization.noteRefused(version, by: url, now: context.clock.now) }
        guard !hasResent, authorization.isRenewable(version, for: url, context: context) else {
            return .stop(.unauthorized)
        }
        // The refresh may go to the same origin, and need what this response holds.
        context.detach(&response)
        do {
            _ = try await authorization.credential(newerThan: version, context)
        } catch {
            if error.isCancellation {
                response.body.discard()
                return .fail(CancellationError())
            }
            return .fail(AuthorizationRefresh.reported(error, response: response))
        }
        // The refreshed credential serves the next call, even if this one cannot be sent again.
        guard isWhole else { return .stop(.notReplayable) }
        hasResent = true
        return .resend
    }
}

/// The origins that a credential may be sent to; it is never sent to others.
///
/// An array literal lists them: `["https://api.example.com", "https://files.example.com:8443"]`. Listed origins get the
/// credential even if a redirect leads there. With a predicate, it is not sent when a redirect leads to another origin.
public struct CredentialScope: Sendable, ExpressibleByArrayLiteral {
    private enum Form: Sendable {
        case origins(Set<String>)
        case predicate(@Sendable (URL) -> Bool)
    }

    private let form: Form

    /// The origins listed.
    public init(arrayLiteral origins: String...) { self = .origins(origins) }

    /// Scheme, host and port of each, such as `https://api.example.com`; the default port may be left out.
    ///
    /// A text that is not an http or https URL is a programming error and stops the program.
    public static func origins(_ origins: some Sequence<String>) -> CredentialScope {
        CredentialScope(
            form: .origins(
                Set(
                    origins.map { text in
                        guard let target = try? TargetURI(text) else {
                            // A literal in the program: a credential must not be sent where nobody meant it to be sent.
                            stopProgram(
                                "\"\(text)\" is not an origin; write one such as https://api.example.com"
                            )
                        }
                        return target.origin
                    }
                )
            )
        )
    }

    /// The URLs for which `predicate` returns true; it must be quick, since it is called for each request.
    public static func matching(_ predicate: @escaping @Sendable (_ url: URL) -> Bool) -> CredentialScope {
        CredentialScope(form: .predicate(predicate))
    }

    private init(form: Form) { self.form = form }

    /// Whether a request to `url` may have the credential.
    ///
    /// - Parameter first: where the call began, before any redirect.
    func allows(_ url: URL?, first: URL?) -> Bool {
        guard let url, let target = try? TargetURI(url.absoluteString) else { return false }
        switch form {
        case .origins(let origins): return origins.contains(target.origin)
        case .predicate(let predicate):
            guard let first, let start = try? TargetURI(first.absoluteString) else { return false }
            return target.isSameOrigin(as: start) && predicate(url)
        }
    }
}

/// A credential of any type, as far as requests need to know it, and how to get the next one.
struct IssuedCredential: Sendable {
    /// Puts it into a request; nil if there is none yet.
    let apply: (@Sendable (inout URLRequest) -> Void)?
    /// When it expires; nil if unknown.
    let expiresAt: Timestamp?
    /// How long it was valid when it was refreshed, by the local clock; nil for the first one, and for one that does not expire.
    var lifetime: Duration?
    /// Requests the next one.
    let renew: @Sendable () async throws -> IssuedCredential

    init<Credential: Sendable>(
        _ credential: Credential?,
        apply: @escaping @Sendable (Credential, inout URLRequest) -> Void,
        expiresAt: @escaping @Sendable (Credential) -> Timestamp?,
        refresh: @escaping @Sendable (Credential?) async throws -> Credential
    ) {
        if let credential {
            self.apply = { request in apply(credential, &request) }
            self.expiresAt = expiresAt(credential)
        } else {
            self.apply = nil
            self.expiresAt = nil
        }
        renew = {
            IssuedCredential(try await refresh(credential), apply: apply, expiresAt: expiresAt, refresh: refresh)
        }
    }

    /// Whether the clock must be checked.
    var canEnd: Bool { apply == nil || expiresAt != nil }

    /// Whether it can be sent at all.
    func isUsable(at now: Timestamp) -> Bool {
        apply != nil && expiresAt.map { now < $0 } ?? true
    }

    /// Whether the next one should be requested before anything is sent.
    func isDue(at now: Timestamp, ahead: Duration) -> Bool {
        guard let lifetime else { return !isUsable(at: now.advanced(by: ahead)) }
        // By this clock it had expired before it arrived, so the clock is wrong, and only the server can say when it expires.
        guard lifetime > .zero else { return false }
        return !isUsable(at: now.advanced(by: min(ahead, lifetime / 2)))
    }
}
