// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Settles, among processes that share a store, which one of them fetches what is missing: one fill for a fleet.
///
/// **Choose.** A store that several processes write has one, such as the Redis store; see ``CacheStore/fillLeasing``.
/// **Use.** An `HTTPCache` asks it before it sends; a lease is a wish to be alone and no right: who gets none may fetch as well.
/// **Implement.** Keep these promises:
///
/// - Of one key and variant one lease is out at a time, but for those that ran out or that a lost server has forgotten.
/// - Nothing throws. A store that does not answer is `.unavailable` at once, or after a time-out of a fraction of a second.
/// - Time is the store's: a lease runs out by the one clock that all processes see, and never by the holder's.
/// - Every wait ends at once when its task is cancelled.
public protocol FillLeasing: Sendable {
    /// Asks to be the one who fetches.
    ///
    /// - Parameters:
    ///   - key: the primary key under which the response would be stored.
    ///   - variant: tells apart what one response cannot answer; bytes of the caller's own making, at most 64.
    ///   - length: after so long without ``FillLease/renew(for:)`` the lease runs out.
    func lease(_ key: StoreKey, variant: StoreKey, for length: Duration) async -> LeaseAnswer
}

/// What a ``FillLeasing`` says; closed, because a cache must have an answer to each.
public enum LeaseAnswer: Sendable {
    /// The caller is to fetch.
    case granted(any FillLease)
    /// Another one is fetching.
    case held(any ForeignLease)
    /// The store cannot tell: go on without.
    case unavailable
}

/// What came of a fill; closed, because every process of a fleet must understand each.
public enum LeaseOutcome: String, Sendable, Hashable, CaseIterable {
    /// The response is stored, and can be used from there.
    case stored
    /// Others may have the response, but not from the store: it took none, or must be confirmed at each use.
    case notReusable = "not-reusable"
    /// The response is for the one who fetched it.
    case notShareable = "not-shareable"
    /// There is no response: somebody else may try.
    case failed
}

/// A lease that this process holds; letting it go ends it as ``LeaseOutcome/failed``.
public protocol FillLease: AnyObject, Sendable {
    /// Whether the lease before it ended as ``LeaseOutcome/stored`` a few seconds ago, so that another look at the store is worth it.
    var followsFill: Bool { get }

    /// Keeps the lease for `length` from now.
    ///
    /// - Returns: false where it is lost, or the store cannot tell; the fetch may go on all the same.
    func renew(for length: Duration) async -> Bool

    /// Tells all who wait what came of it; does not wait for the store. Only the first call counts.
    func end(_ outcome: LeaseOutcome)
}

/// A lease that another process holds.
public protocol ForeignLease: Sendable {
    /// Waits for its end; one that runs out has ``LeaseOutcome/failed``.
    ///
    /// - Returns: nil where the store can no longer tell, or the task was cancelled.
    func end() async -> LeaseOutcome?
}

extension CacheStore {
    /// None: what one process alone may write needs no leases.
    public var fillLeasing: (any FillLeasing)? { nil }
}
