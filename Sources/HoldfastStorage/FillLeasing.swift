// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides which of the processes that share a store fetches a missing response, so that only one of them does.
///
/// **Choose.** A store that several processes write has one, such as the Redis store; see ``CacheStore/fillLeasing``.
/// **Use.** An `HTTPCache` asks it before it sends. A lease is advisory: a process without one may fetch too.
/// **Implement.** Keep these promises:
///
/// - At most one lease exists for each key and variant, except for those that expired or that the server lost.
/// - Nothing throws. If the store does not answer, the result is `.unavailable`, at once or after a timeout of a fraction of a
///   second.
/// - The store measures the time: a lease expires by the one clock that all processes see, never by the holder's.
/// - Every wait ends at once if its task is cancelled.
public protocol FillLeasing: Sendable {
    /// Asks for permission to fetch.
    ///
    /// - Parameters:
    ///   - key: the primary key under which the response would be stored.
    ///   - variant: tells apart requests that one response cannot answer; any bytes that the caller chooses, at most 64.
    ///   - length: how long the lease lasts without ``FillLease/renew(for:)``.
    func lease(_ key: StoreKey, variant: StoreKey, for length: Duration) async -> LeaseAnswer
}

/// The answer of a ``FillLeasing``; closed, because a cache must handle each.
public enum LeaseAnswer: Sendable {
    /// The caller should fetch.
    case granted(any FillLease)
    /// Another process is fetching.
    case held(any ForeignLease)
    /// The store cannot tell: continue without a lease.
    case unavailable
}

/// The outcome of a fill; closed, because every process that shares the store must understand each.
public enum LeaseOutcome: String, Sendable, Hashable, CaseIterable {
    /// The response is stored, and others can use it from there.
    case stored
    /// Others may have the response, but not from the store: it was not stored, or must be validated before each use.
    case notReusable = "not-reusable"
    /// The response is only for the process that fetched it.
    case notShareable = "not-shareable"
    /// There is no response: another process may try.
    case failed
}

/// A lease that this process holds; releasing the last reference ends it as ``LeaseOutcome/failed``.
public protocol FillLease: AnyObject, Sendable {
    /// Whether the previous lease ended as ``LeaseOutcome/stored`` a few seconds ago, so that looking in the store again may help.
    var followsFill: Bool { get }

    /// Extends the lease to `length` from now.
    ///
    /// - Returns: false if the lease is lost, or if the store cannot tell; the fetch may continue anyway.
    func renew(for length: Duration) async -> Bool

    /// Tells all waiting processes the outcome, without waiting for the store. Only the first call counts.
    func end(_ outcome: LeaseOutcome)
}

/// A lease that another process holds.
public protocol ForeignLease: Sendable {
    /// Waits until it ends; one that expires has the outcome ``LeaseOutcome/failed``.
    ///
    /// - Returns: nil if the store can no longer tell, or if the task was cancelled.
    func end() async -> LeaseOutcome?
}

extension CacheStore {
    /// Nil: a store that only one process may write needs no leases.
    public var fillLeasing: (any FillLeasing)? { nil }
}
