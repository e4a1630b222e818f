// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The versions of a credential and the one refresh under way; each change says what is to be done once the lock is released.
struct RefreshState {
    typealias Continuation = CheckedContinuation<VersionedCredential, any Error>

    /// Something to do outside the lock.
    enum Action {
        case start(refresh: Int, @Sendable () async throws -> IssuedCredential)
        case resume(Continuation, Result<VersionedCredential, any Error>)
        case cancel(Task<Void, Never>)
    }

    /// What a call that was refused can hope for.
    enum Prospect {
        /// A newer credential, now or after a refresh.
        case newer
        /// Nothing: the credential is itself new and was never accepted.
        case none
    }

    private struct Running {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [UInt64: Continuation] = [:]
        /// Everybody left, and it was told to end.
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
    /// Until when a refusal of the current version, which no answer has accepted yet, calls for no further refresh.
    private var probation: MonotonicInstant?
    private var nextWaiter: UInt64 = 0
    private var refreshCount = 0
    private var departed: Set<UInt64> = []
    /// The resources that refuse every credential, as far as is known.
    private var refusals: [String: Refusals] = [:]
    /// How many refreshes may begin at once for refused calls, and since when it has been counted.
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

    /// A number for one who will wait.
    mutating func enroll() -> UInt64 {
        nextWaiter += 1
        return nextWaiter
    }

    /// What a call can hope for whose URL has refused `version`.
    mutating func prospect(after version: Int, for url: URL?, now: MonotonicInstant) -> Prospect {
        // There is a newer one, or will be, or its failure is known: that costs nothing.
        if version < current.version || running != nil || failure.map({ now < $0.until }) ?? false { return .newer }
        if let probation, now < probation { return .none }
        if let refusals = refusals[RefreshState.resource(of: url)], now < refusals.until { return .none }
        let regained = countedAt.map { max(0, $0.duration(to: now) / max(retryPause, .milliseconds(1))) } ?? 0
        (allowance, countedAt) = (min(RefreshState.mostAtOnce, allowance + regained), now)
        return allowance >= 1 ? .newer : .none
    }

    /// An answer shows that the server takes this version.
    mutating func accepted(_ version: Int, by url: URL?) {
        if version == current.version { probation = nil }
        if !refusals.isEmpty { refusals[RefreshState.resource(of: url)] = nil }
    }

    /// A resource has refused what was refreshed for it.
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

    /// What a server refuses or takes a credential for: the URL without its query.
    private static func resource(of url: URL?) -> String {
        url.map { String($0.absoluteString.prefix { $0 != "?" && $0 != "#" }) } ?? ""
    }

    /// Waits for a credential newer than `version`: there is one, or the refresh under way is joined, or begun.
    mutating func join(
        _ waiter: UInt64,
        newerThan version: Int,
        _ continuation: Continuation,
        now: MonotonicInstant
    ) -> [Action] {
        if departed.contains(waiter) { return [.resume(continuation, .failure(CancellationError()))] }
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
        // Counted where one begins: all the calls that were refused at once have this one.
        allowance = max(0, allowance - 1)
        running = Running(number: refreshCount, waiters: waiters)
        return [.start(refresh: refreshCount, current.issued.renew)]
    }

    /// Takes the task of a refresh that was started; it may be over by now, and another one begun.
    mutating func adopt(_ task: Task<Void, Never>, of refresh: Int) -> [Action] {
        guard running?.number == refresh else { return [] }
        running?.task = task
        return running?.isAbandoned == true ? [.cancel(task)] : []
    }

    /// One who waited leaves; the last one ends the refresh.
    mutating func leave(_ waiter: UInt64) -> [Action] {
        guard let continuation = running?.waiters.removeValue(forKey: waiter) else {
            departed.insert(waiter)
            return []
        }
        var actions: [Action] = [.resume(continuation, .failure(CancellationError()))]
        if running?.waiters.isEmpty == true {
            running?.isAbandoned = true
            if let task = running?.task { actions.append(.cancel(task)) }
        }
        return actions
    }

    /// One who waited is gone for good.
    mutating func forget(_ waiter: UInt64) {
        departed.remove(waiter)
    }

    /// A refresh is over.
    ///
    /// One that was given up may bring a credential all the same, which is used where none has come since.
    mutating func finish(
        _ number: Int,
        _ result: Result<IssuedCredential, any Error>,
        now: MonotonicInstant
    ) -> [Action] {
        guard let ended = running, ended.number == number else {
            guard case .success(let issued) = result, number == refreshCount else { return [] }
            succeed(with: issued, now: now)
            return []
        }
        running = nil
        let outcome: Result<VersionedCredential, any Error>
        switch result {
        case .success(let issued):
            succeed(with: issued, now: now)
            outcome = .success(current)
        case .failure(let error):
            if ended.isAbandoned {
                // It failed because it was told to; those who came since then are owed one of their own.
                guard !ended.waiters.isEmpty else { return [] }
                return start(for: ended.waiters)
            }
            failure = Failure(error: error, until: now.advanced(by: retryPause))
            outcome = .failure(error)
        }
        return ended.waiters.sorted { $0.key < $1.key }.map { .resume($0.value, outcome) }
    }

    /// A refresh takes too long: those who wait for it fail, and it is told to end.
    mutating func giveUp(_ number: Int, for error: any Error, now: MonotonicInstant) -> [Action] {
        guard let given = running, given.number == number else { return [] }
        let cancellation = given.task.map { Action.cancel($0) }
        return [cancellation].compactMap(\.self) + finish(number, .failure(RefreshFailure(cause: error)), now: now)
    }

    private mutating func succeed(with issued: IssuedCredential, now: MonotonicInstant) {
        current = VersionedCredential(version: current.version + 1, issued: issued)
        failure = nil
        probation = now.advanced(by: retryPause)
    }
}

/// The error of a refresh, told apart from the deadline and the cancellation of those who wait for it.
struct RefreshFailure: Error {
    let cause: any Error
}

/// A credential and its place in the row of those that followed one another.
struct VersionedCredential: Sendable {
    let version: Int
    let issued: IssuedCredential
}
