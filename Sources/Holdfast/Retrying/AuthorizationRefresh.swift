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
/// There is at most one refresh of each version of the credential, however many calls are rejected at once. They wait for the
/// refresh together, each until its own deadline or cancellation; when the last of them leaves, the refresh is cancelled. A
/// call that was sent with an older version is sent again with the current one. A call, or a hop of it, is sent again once for
/// this reason; that does not count as a retry, takes nothing from a budget, and is listed in the response's `attempts`. If a
/// refresh fails, all waiting calls end with `.authorizationFailed`, which has the cause and the 401, and it is not repeated
/// before ``retryPause`` is over; nor does a new credential that the server has not accepted anywhere yet cause a refresh. A
/// refresh that takes longer than ``refreshTimeout`` counts as failed; if it still returns a credential, that is used from then
/// on. A resource (a URL without its query) that rejects the refreshed credential causes no further refresh for ``retryPause``,
/// then for twice as long, up to 10 minutes, while other resources are answered. All resources together may cause five
/// refreshes at once, and one more each ``retryPause``. A call that may not cause a refresh ends with the 401.
///
/// Calls made inside the refresh closure, even through the same pipeline, carry no credential and never cause a refresh, so a
/// refresh cannot wait for itself; do not make them in a detached task. A request with its own Authorization field is left
/// alone, and so is a 403: it says that another credential of this kind will not help.
///
/// The fields that the credential is written to, whatever their names, count as ``CallOptions/credentialFields`` of the call:
/// caches keep the responses to different credentials apart, unless a principal is named, and redirects drop the fields.
public final class AuthorizationRefresh: Sendable {
    /// How long to wait before repeating a failed refresh.
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
    ///   - credential: the credential at the start, if known; nil: the first request that may carry one causes a refresh.
    ///   - scope: the origins it may be sent to.
    ///   - principal: the name of the credential's owner, which determines the cache's partition for calls that name no
    ///     principal. Nil, the default: the credential itself determines it, so each new one starts with an empty cache.
    ///   - statuses: the statuses that reject the credential; 401 by default. 403 never counts.
    ///   - retryPause: how long to wait before repeating a failed refresh; 10 s by default.
    ///   - refreshTimeout: how long a refresh may take before all calls that wait for it fail; 60 s by default.
    ///   - renewsAhead: how long before its expiry a credential is renewed; 10 s by default.
    ///   - expiresAt: when a credential expires, so that it is renewed before anything is sent; nil, the default: unknown.
    ///   - apply: puts a credential into a request, replacing any earlier one; must be quick.
    ///   - refresh: makes the next credential from the last, or throws if it cannot. It is cancelled when no call waits for it
    ///     any longer; if it still returns a credential, that is used.
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
    ///   - token: the token at the start, if known; nil: the first request causes a refresh.
    ///   - scope: the origins it may be sent to.
    ///   - principal: the name of the token's owner, for the cache; nil, the default: the token itself.
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
            apply: { $1.setFields([(.authorization, "Bearer \($0)")]) },
            refresh: refresh
        )
    }

    // MARK: For the pipeline

    /// The current credential.
    var current: VersionedCredential { state.withLock { $0.current } }

    /// How many calls wait for a refresh.
    var waiterCount: Int { state.withLock { $0.waiterCount } }

    /// Whether a request to `url` may have the credential now; never inside the refresh itself.
    func covers(_ url: URL?, first: URL?) -> Bool {
        scope.allows(url, first: first) && !AuthorizationRefresh.underWay.contains(ObjectIdentifier(self))
    }

    /// Whether a call that begins with this request may have the credential now.
    package func covers(_ request: URLRequest) -> Bool { covers(request.url, first: request.url) }

    /// Whether a response rejects the credential.
    func isRefusal(_ status: StatusCode) -> Bool { statuses.contains(status) }

    /// The credential to send with, renewed first if it expires soon.
    func credentialToSend(_ context: CallContext) async throws -> VersionedCredential {
        let current = current
        guard current.issued.canEnd, current.issued.isDue(at: context.clock.timestamp, ahead: renewsAhead) else {
            return current
        }
        do {
            return try await credential(newerThan: current.version, context)
        } catch  where !error.isCancellation && current.issued.isUsable(at: context.clock.timestamp) {
            // It is valid for a while, and if it is not, the server will say so.
            return current
        } catch {
            throw AuthorizationRefresh.reported(error, response: nil)
        }
    }

    /// The error that a call ends with, including the response that rejected the credential.
    static func reported(_ error: any Error, response: Response?) -> any Error {
        let progress: TransportProgress = response == nil ? .notSent : .headReceived
        if let refused = error as? RefreshFailure {
            return ServiceError(
                .authorizationFailed,
                "The access token is missing, has expired, or was rejected, and refreshing it failed; see the cause. The "
                    + "user may have to sign in again.",
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

    /// Whether a newer credential may help with a resource that has rejected `version`.
    func isRenewable(_ version: Int, for url: URL?, context: CallContext) -> Bool {
        state.withLock { $0.mayRenew(version, for: url, now: context.clock.now) }
    }

    /// A response shows that the server accepts this version.
    func noteAccepted(_ version: Int, by url: URL?) {
        state.withLock { $0.accepted(version, by: url) }
    }

    /// A resource has rejected a version that was made because it rejected the one before.
    func noteRefused(_ version: Int, by url: URL?, now: MonotonicInstant) {
        state.withLock { $0.refused(version, by: url, now: now) }
    }

    /// A credential newer than `version`, after a refresh if necessary, within the call's deadline.
    func credential(newerThan version: Int, _ context: CallContext) async throws -> VersionedCredential {
        try await context.beforeDeadline(
            failure: context.deadlineExceeded(
                "while its credential was being refreshed",
                advice: "Allow more time.",
                progress: .notSent
            )
        ) {
            try await self.wait(newerThan: version, context.clock)
        }
    }

    private func wait(newerThan version: Int, _ clock: any HoldfastClock) async throws -> VersionedCredential {
        try Task.checkCancellation()
        let waiter = state.withLock { $0.enroll() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let actions = state.withLock {
                    $0.join(waiter, newerThan: version, continuation: continuation, now: clock.now)
                }
                perform(actions, clock: clock)
                // The handler may have run before the waiter joined.
                if Task.isCancelled { perform(state.withLock { $0.leave(waiter) }, clock: clock) }
            }
        } onCancel: {
            perform(state.withLock { $0.leave(waiter) }, clock: clock)
        }
    }

    private func perform(_ actions: [RefreshState.Action], clock: any HoldfastClock) {
        for action in actions {
            switch action {
            case .resume(let continuation, let result): continuation.resume(with: result)
            case .cancel(let task): task.cancel()
            case .start(let number, let renew):
                let task = Task { await run(number, renew: renew, clock: clock) }
                perform(state.withLock { $0.adopt(task, of: number) }, clock: clock)
            }
        }
    }

    private func run(
        _ number: Int,
        renew: @Sendable () async throws -> IssuedCredential,
        clock: any HoldfastClock
    ) async {
        let inside = AuthorizationRefresh.underWay.union([ObjectIdentifier(self)])
        let result: Result<IssuedCredential, any Error>
        let timer = Task {
            do {
                try await clock.sleep(until: clock.now.advanced(by: refreshTimeout))
                perform(state.withLock { $0.giveUp(number, for: tookTooLong, now: clock.now) }, clock: clock)
            } catch {
                // The refresh is over.
            }
        }
        defer { timer.cancel() }
        do {
            var issued = try await AuthorizationRefresh.$underWay.withValue(inside) { try await renew() }
            issued.lifetime = issued.expiresAt.map { clock.timestamp.duration(to: $0) }
            result = .success(issued)
        } catch {
            result = .failure(RefreshFailure(cause: error))
        }
        perform(state.withLock { $0.finish(number, result: result, now: clock.now) }, clock: clock)
    }

    private var tookTooLong: ServiceError {
        ServiceError(
            .timeout,
            "The refresh of the credential did not end within \(refreshTimeout). Let it time out by itself, or raise "
                + "`refreshTimeout`.",
            progress: .notSent
        )
    }
}

/// The versions of a credential and the current refresh; each change returns what to do once the lock is released.
struct RefreshState {
    typealias Continuation = CheckedContinuation<VersionedCredential, any Error>

    /// Something to do outside the lock.
    enum Action {
        case start(refresh: Int, @Sendable () async throws -> IssuedCredential)
        case resume(Continuation, Result<VersionedCredential, any Error>)
        case cancel(Task<Void, Never>)
    }

    private struct Running {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [UInt64: Continuation] = [:]
        /// Everybody left, and it was cancelled.
        var isAbandoned = false
    }

    private struct Failure {
        let error: any Error
        let until: MonotonicInstant
    }

    private let retryPause: Duration
    private(set) var current: VersionedCredential
    private var running: Running?
    /// The failed refresh of the current version.
    private var failure: Failure?
    /// Until when a rejection of the current version, which no response has accepted yet, causes no further refresh.
    private var probation: MonotonicInstant?
    private var nextWaiter: UInt64 = 0
    private var refreshCount = 0
    /// The refresh that made the current version.
    private var newestSuccess = 0
    /// The resources that reject every credential, as far as known.
    private var refusals: [String: Refusals] = [:]
    /// How many refreshes rejected calls may cause at once, and since when this has been counted.
    private var allowance = mostAtOnce
    private var countedAt: MonotonicInstant?

    private struct Refusals {
        var count: Int
        var until: MonotonicInstant
    }

    private static let mostAtOnce = 5.0
    private static let mostResources = 256
    private static let longestPause: Duration = .seconds(600)

    init(_ credential: IssuedCredential, retryPause: Duration) {
        current = VersionedCredential(version: 1, issued: credential)
        self.retryPause = retryPause
    }

    /// How many calls wait for the refresh.
    var waiterCount: Int { running?.waiters.count ?? 0 }

    /// A number for a new waiter.
    mutating func enroll() -> UInt64 {
        nextWaiter += 1
        return nextWaiter
    }

    /// Whether a call whose URL has rejected `version` may wait for a newer one; counts the refreshes that calls may cause.
    mutating func mayRenew(_ version: Int, for url: URL?, now: MonotonicInstant) -> Bool {
        // There is a newer one, or will be, or its failure is known: that costs nothing.
        if version < current.version || running != nil || failure.map({ now < $0.until }) ?? false { return true }
        if let probation, now < probation { return false }
        if let refusals = refusals[RefreshState.resource(of: url)], now < refusals.until { return false }
        let regained = countedAt.map { max(0, $0.duration(to: now) / max(retryPause, .milliseconds(1))) } ?? 0
        (allowance, countedAt) = (min(RefreshState.mostAtOnce, allowance + regained), now)
        return allowance >= 1
    }

    /// A response shows that the server accepts this version.
    mutating func accepted(_ version: Int, by url: URL?) {
        if version == current.version { probation = nil }
        if !refusals.isEmpty { refusals[RefreshState.resource(of: url)] = nil }
    }

    /// A resource has rejected what was refreshed for it.
    mutating func refused(_ version: Int, by url: URL?, now: MonotonicInstant) {
        guard version == current.version else { return }
        let resource = RefreshState.resource(of: url)
        if refusals.count >= RefreshState.mostResources, refusals[resource] == nil {
            refusals = refusals.filter { now < $0.value.until }
            if refusals.count >= RefreshState.mostResources { refusals = [:] }
        }
        let count = min((refusals[resource]?.count ?? 0) + 1, 20)
        let pause = min(min(retryPause, RefreshState.longestPause) * (1 << (count - 1)), RefreshState.longestPause)
        refusals[resource] = Refusals(count: count, until: now.advanced(by: pause))
    }

    /// What a server accepts or rejects a credential for: the URL without its query.
    private static func resource(of url: URL?) -> String {
        url.map { String($0.absoluteString.prefix { $0 != "?" && $0 != "#" }) } ?? ""
    }

    /// Waits for a credential newer than `version`: there is one, or the current refresh is joined, or one begins.
    mutating func join(
        _ waiter: UInt64,
        newerThan version: Int,
        continuation: Continuation,
        now: MonotonicInstant
    ) -> [Action] {
        if current.version > version { return [.resume(continuation, .success(current))] }
        if let failure, now < failure.until { return [.resume(continuation, .failure(failure.error))] }
        if running != nil {
            running?.waiters[waiter] = continuation
            return []
        }
        return start(for: [waiter: continuation])
    }

    private mutating func start(for waiters: [UInt64: Continuation]) -> [Action] {
        refreshCount += 1
        // Counted when one begins: all calls that were rejected at once share it.
        allowance = max(0, allowance - 1)
        running = Running(number: refreshCount, waiters: waiters)
        return [.start(refresh: refreshCount, current.issued.renew)]
    }

    /// Takes the task of a refresh that was started; it may be over by now, and another one begun.
    mutating func adopt(_ task: Task<Void, Never>, of refresh: Int) -> [Action] {
        // Given up, or over.
        guard running?.number == refresh else { return [.cancel(task)] }
        running?.task = task
        return running?.isAbandoned == true ? [.cancel(task)] : []
    }

    /// A waiter leaves; the last one ends the refresh.
    mutating func leave(_ waiter: UInt64) -> [Action] {
        guard let continuation = running?.waiters.removeValue(forKey: waiter) else { return [] }
        var actions: [Action] = [.resume(continuation, .failure(CancellationError()))]
        if running?.waiters.isEmpty == true {
            running?.isAbandoned = true
            if let task = running?.task { actions.append(.cancel(task)) }
        }
        return actions
    }

    /// A refresh is over.
    ///
    /// A refresh that was given up may still return a credential, which is used if no other has come since.
    mutating func finish(
        _ number: Int,
        result: Result<IssuedCredential, any Error>,
        now: MonotonicInstant
    ) -> [Action] {
        guard let ended = running, ended.number == number else {
            guard case .success(let issued) = result, number > newestSuccess else { return [] }
            succeed(with: issued, of: number, now: now)
            // A refresh that has begun since renews what this one has renewed: those who wait for it have their credential.
            let waiters = running?.waiters ?? [:]
            running?.waiters = [:]
            running?.isAbandoned = true
            let served = waiters.sorted { $0.key < $1.key }.map { Action.resume($0.value, .success(current)) }
            return served + (running?.task.map { [Action.cancel($0)] } ?? [])
        }
        running = nil
        let outcome: Result<VersionedCredential, any Error>
        switch result {
        case .success(let issued):
            succeed(with: issued, of: number, now: now)
            outcome = .success(current)
        case .failure(let error):
            if ended.isAbandoned {
                // It failed because it was cancelled; waiters that came since then need their own refresh.
                guard !ended.waiters.isEmpty else { return [] }
                return start(for: ended.waiters)
            }
            failure = Failure(error: error, until: now.advanced(by: retryPause))
            outcome = .failure(error)
        }
        return ended.waiters.sorted { $0.key < $1.key }.map { .resume($0.value, outcome) }
    }

    /// A refresh takes too long: its waiters fail, and it is cancelled.
    mutating func giveUp(_ number: Int, for error: any Error, now: MonotonicInstant) -> [Action] {
        guard let given = running, given.number == number else { return [] }
        let cancellation = given.task.map { Action.cancel($0) }
        return [cancellation].compactMap(\.self)
            + finish(number, result: .failure(RefreshFailure(cause: error)), now: now)
    }

    private mutating func succeed(with issued: IssuedCredential, of refresh: Int, now: MonotonicInstant) {
        newestSuccess = refresh
        current = VersionedCredential(version: current.version + 1, issued: issued)
        failure = nil
        probation = now.advanced(by: retryPause)
    }
}

/// The error of a refresh, as opposed to the deadline or the cancellation of a waiter.
struct RefreshFailure: Error {
    let cause: any Error
}

/// A credential and its position in the order of versions.
struct VersionedCredential: Sendable {
    let version: Int
    let issued: IssuedCredential
}
