// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Puts a credential into requests, and renews it once for all calls when the server refuses it with 401 (RFC 9110 §15.5.2).
///
/// ```swift
/// configuration.authorization = .bearer(token: saved, for: ["https://api.example.com"]) { expired in
///     try await accounts.renew(expired)
/// }
/// ```
///
/// Of each version of the credential there is at most one refresh, however many calls are refused at once. They wait for it
/// together, each no longer than its own deadline and cancellation allow; when the last of them leaves, the refresh is
/// cancelled. A call that was sent with an older version is not refused for good: it is sent again with the current one. A
/// call, or hop of one, is sent again once for this reason; that is no retry, takes nothing from a budget, and stands among
/// the response's `attempts`. A refresh that fails ends all who waited with `.authorizationFailed`, which has the cause and
/// the 401, and is not repeated before ``retryPause`` is over; nor is a refresh asked for by a new credential that the server
/// has accepted nowhere yet. A refresh that takes longer than ``refreshTimeout`` has failed; the credential that it brings all the same
/// is used from then on. A resource (a URL without its query) that refuses what was refreshed for it asks for no further
/// refresh for ``retryPause``, then for twice as long, up to 10 minutes, while others are answered; and all resources together ask for
/// five at once and one more each ``retryPause``. A call that may ask for none ends with the 401.
///
/// Calls made inside the refresh closure, also through the same pipeline, bear no credential and are never refreshed, so a
/// refresh cannot wait for itself; do not leave its task for a detached one. A request that brings its own Authorization field
/// is left alone, and so is a 403: it says that another credential of this kind will not help.
///
/// The fields that the credential is written into, whatever their names, count as ``CallOptions/credentialFields`` of the call:
/// caches keep the responses to different credentials apart, unless a principal is named, and redirects leave the fields behind.
public final class AuthorizationRefresh: Sendable {
    /// For how long a failed refresh is not repeated.
    public let retryPause: Duration
    /// How long a refresh may take.
    public let refreshTimeout: Duration
    let principal: String?
    private let scope: CredentialScope
    private let statuses: Set<StatusCode>
    private let renewsAhead: Duration
    private let state: Mutex<RefreshState>

    /// The refreshes that the running task is part of.
    @TaskLocal private static var underWay: Set<ObjectIdentifier> = []

    /// A refresh of credentials of any type.
    ///
    /// - Parameters:
    ///   - credential: what is known at the start; nil: the first request that may bear one asks for it.
    ///   - scope: the origins it may be sent to.
    ///   - principal: the name of whose credential this is, whatever its version: the partition of the cache, where a call
    ///     names none. Nil, the default: the credential itself names it, and with each new one the cache begins anew.
    ///   - statuses: which answers refuse the credential; 401 by default. 403 never counts.
    ///   - retryPause: for how long a failed refresh is not repeated; 10 s by default.
    ///   - refreshTimeout: how long a refresh may take before all who wait for it fail; 60 s by default.
    ///   - renewsAhead: how long before its end a credential is renewed; 10 s by default.
    ///   - expiresAt: when a credential ends, so that it is renewed before anything is sent; nil, the default: unknown.
    ///   - apply: puts a credential into a request, in place of an earlier one that may be there; must be quick.
    ///   - refresh: makes the next credential from the last; throws to say that it cannot. Is cancelled when nobody waits for it
    ///     any longer; a credential it returns all the same is used.
    public init<Credential: Sendable>(
        credential: Credential?,
        for scope: CredentialScope,
        principal: String? = nil,
        statuses: Set<StatusCode> = [.unauthorized],
        retryPause: Duration = .seconds(10),
        refreshTimeout: Duration = .seconds(60),
        renewsAhead: Duration = .seconds(10),
        expiresAt: @escaping @Sendable (Credential) -> Timestamp? = { _ in nil },
        apply: @escaping @Sendable (_ credential: Credential, _ request: inout URLRequest) -> Void,
        refresh: @escaping @Sendable (_ last: Credential?) async throws -> Credential
    ) {
        self.scope = scope
        self.principal = principal
        self.statuses = statuses.subtracting([.forbidden])
        self.retryPause = max(retryPause, .zero)
        self.refreshTimeout = max(refreshTimeout, .zero)
        self.renewsAhead = max(renewsAhead, .zero)
        let issued = IssuedCredential(credential, apply: apply, expiresAt: expiresAt, refresh: refresh)
        state = Mutex(RefreshState(issued, retryPause: max(retryPause, .zero)))
    }

    /// Bearer tokens (RFC 6750 §2.1).
    ///
    /// - Parameters:
    ///   - token: the token known at the start; nil: the first request asks for one.
    ///   - scope: the origins it may be sent to.
    ///   - principal: the name of whose token this is, for the cache; nil, the default: the token itself.
    ///   - refresh: makes the next token from the last.
    public static func bearer(
        token: String?,
        for scope: CredentialScope,
        principal: String? = nil,
        refresh: @escaping @Sendable (_ last: String?) async throws -> String
    ) -> AuthorizationRefresh {
        AuthorizationRefresh(
            credential: token,
            for: scope,
            principal: principal,
            apply: { $1.setValue("Bearer \($0)", forHTTPHeaderField: "Authorization") },
            refresh: refresh
        )
    }

    // MARK: For the pipeline

    /// The credential of now.
    var current: VersionedCredential { state.withLock { $0.current } }

    /// How many calls wait for a refresh.
    var waiterCount: Int { state.withLock { $0.waiterCount } }

    /// Whether a request to `url` may bear the credential now; never inside the refresh itself.
    func covers(_ url: URL?, first: URL?) -> Bool {
        scope.allows(url, first: first) && !AuthorizationRefresh.underWay.contains(ObjectIdentifier(self))
    }

    /// Whether an answer refuses the credential.
    func isRefusal(_ status: StatusCode) -> Bool { statuses.contains(status) }

    /// The credential to send with, renewed before where its end is near.
    func credentialToSend(_ context: CallContext) async throws -> VersionedCredential {
        let current = current
        guard current.issued.canEnd, current.issued.isDue(at: context.clock.timestamp, ahead: renewsAhead) else {
            return current
        }
        do {
            return try await credential(newerThan: current.version, context)
        } catch  where !error.isCancellation && current.issued.isUsable(at: context.clock.timestamp) {
            // It is good for a while, and if it is not, the server will say so.
            return current
        } catch {
            throw AuthorizationRefresh.reported(error, nil)
        }
    }

    /// The error as a call ends with it, with the response that refused the credential.
    static func reported(_ error: any Error, _ response: Response?) -> any Error {
        let progress: TransportProgress = response == nil ? .notSent : .headReceived
        if let refused = error as? RefreshFailure {
            return ServiceError(
                .authorizationFailed,
                "The credential is missing, at its end, or was refused, and could not be refreshed; see the cause, and sign "
                    + "in again if need be.",
                cause: refused.cause,
                progress: progress,
                response: response
            )
        }
        guard var error = error as? ServiceError else { return error }
        error.progress = progress
        error.response = response
        return error
    }

    /// Whether a newer credential may help a resource that has refused `version`.
    func isMendable(_ version: Int, for url: URL?, _ context: CallContext) -> Bool {
        state.withLock { $0.prospect(after: version, for: url, now: context.clock.now) } == .newer
    }

    /// An answer shows that the server takes this version.
    func noteAccepted(_ version: Int, by url: URL?) {
        state.withLock { $0.accepted(version, by: url) }
    }

    /// A resource has refused a version that was made because it refused the one before.
    func noteRefused(_ version: Int, by url: URL?, now: MonotonicInstant) {
        state.withLock { $0.refused(version, by: url, now: now) }
    }

    /// A credential newer than `version`, after a refresh if need be, within the call's deadline.
    func credential(newerThan version: Int, _ context: CallContext) async throws -> VersionedCredential {
        let clock = context.clock
        guard let deadline = context.deadline else { return try await wait(newerThan: version, clock) }
        do {
            return try await withDeadline(deadline, on: clock, discard: { _ in }) {
                try await self.wait(newerThan: version, clock)
            }
        } catch let error as ServiceError where error.code == .timeout && clock.now >= deadline {
            throw ServiceError(
                .deadlineExceeded,
                "The time for this call was over while its credential was being refreshed; allow more time.",
                cause: error,
                progress: .notSent
            )
        }
    }

    private func wait(newerThan version: Int, _ clock: any HoldfastClock) async throws -> VersionedCredential {
        let waiter = state.withLock { $0.enroll() }
        defer { state.withLock { $0.forget(waiter) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let actions = state.withLock {
                    $0.join(waiter, newerThan: version, continuation, now: clock.now)
                }
                perform(actions, clock)
            }
        } onCancel: {
            perform(state.withLock { $0.leave(waiter) }, clock)
        }
    }

    private func perform(_ actions: [RefreshState.Action], _ clock: any HoldfastClock) {
        for action in actions {
            switch action {
            case .resume(let continuation, let result): continuation.resume(with: result)
            case .cancel(let task): task.cancel()
            case .start(let number, let renew):
                let task = Task { await run(number, renew, clock) }
                perform(state.withLock { $0.adopt(task, of: number) }, clock)
            }
        }
    }

    private func run(
        _ number: Int,
        _ renew: @Sendable () async throws -> IssuedCredential,
        _ clock: any HoldfastClock
    ) async {
        let inside = AuthorizationRefresh.underWay.union([ObjectIdentifier(self)])
        let result: Result<IssuedCredential, any Error>
        let timer = Task {
            do {
                try await clock.sleep(until: clock.now.advanced(by: refreshTimeout))
                perform(state.withLock { $0.giveUp(number, for: tookTooLong, now: clock.now) }, clock)
            } catch {
                // The refresh is over.
            }
        }
        defer { timer.cancel() }
        do {
            result = .success(try await AuthorizationRefresh.$underWay.withValue(inside) { try await renew() })
        } catch {
            result = .failure(RefreshFailure(cause: error))
        }
        perform(state.withLock { $0.finish(number, result, now: clock.now) }, clock)
    }

    private var tookTooLong: ServiceError {
        ServiceError(
            .timeout,
            "The refresh of the credential did not end within \(refreshTimeout); let it give up by itself, or allow more "
                + "`refreshTimeout`.",
            progress: .notSent
        )
    }
}
