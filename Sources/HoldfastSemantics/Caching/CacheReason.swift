// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Why a cache did what it did: a stable code, and the clause the rule comes from.
///
/// Equal codes mean equal reasons; the set is open, since caches gain rules.
public struct CacheReason: Sendable, Hashable, CustomStringConvertible {
    /// The stable code, fit for metric labels.
    public let code: String

    /// The clause the rule comes from; empty for a rule of this library.
    public let section: String

    /// Creates a reason.
    public init(code: String, section: String = "") {
        self.code = code
        self.section = section
    }

    /// Code and clause.
    public var description: String { section.isEmpty ? code : "\(code) (\(section))" }

    // MARK: Why the store answered

    /// The stored response is fresh.
    public static let fresh = CacheReason(code: "fresh", section: "RFC 9111 §4.2")
    /// The caller accepts a stale response: max-stale, or any age at all.
    public static let acceptedStale = CacheReason(code: "accepted-stale", section: "RFC 9111 §5.2.1.2")
    /// The response may be used while it is being revalidated.
    public static let staleWhileRevalidate = CacheReason(code: "stale-while-revalidate", section: "RFC 5861 §3")
    /// The origin failed, and the stored response stands in.
    public static let staleIfError = CacheReason(code: "stale-if-error", section: "RFC 5861 §4")
    /// The origin could not be reached, and the stored response stands in.
    public static let disconnected = CacheReason(code: "disconnected", section: "RFC 9111 §4.2.4")
    /// The origin took longer than the caller waits while something stale is at hand.
    public static let patience = CacheReason(code: "patience", section: "RFC 9111 §4.2.4")
    /// The caller's own condition was answered from the store.
    public static let condition = CacheReason(code: "condition", section: "RFC 9111 §4.3.2")
    /// The exchange of an equal call answered.
    public static let collapsed = CacheReason(code: "collapsed", section: "RFC 9111 §4")
    /// The call waited while another process that shares the store fetched the same, and was answered with what that one stored.
    public static let filledElsewhere = CacheReason(code: "filled-elsewhere", section: "RFC 9111 §4")

    // MARK: Why the origin was asked

    /// The method is not answered from a store, or its responses are not stored.
    public static let method = CacheReason(code: "method", section: "RFC 9111 §3")
    /// The request states a condition that only the origin can judge.
    public static let originCondition = CacheReason(code: "origin-condition", section: "RFC 9111 §4.3.2")
    /// The call asks for a new response.
    public static let reload = CacheReason(code: "reload")
    /// The request names another host than its URI.
    public static let host = CacheReason(code: "host", section: "RFC 9110 §7.2")
    /// The request has content, which its key does not tell.
    public static let content = CacheReason(code: "content", section: "RFC 9110 §9.3.1")
    /// The URL is no http or https URI.
    public static let target = CacheReason(code: "target", section: "RFC 9110 §4.2")
    /// The call or the request says no-store.
    public static let requestNoStore = CacheReason(code: "request-no-store", section: "RFC 9111 §5.2.1.5")
    /// Nothing is stored for the URI.
    public static let notStored = CacheReason(code: "not-stored", section: "RFC 9111 §4")
    /// Whose response it is decides. As the reason of a miss: nothing is stored for this request's principal, but something was for
    /// another one's. As the reason why a response was not stored: the credentials that were sent are not those that were
    /// looked up.
    ///
    /// Of a miss it is a hint: the cache remembers for a few thousand URIs, since it was opened, who stored last, and says
    /// ``notStored`` where it does not know. What the other one stored may be gone by then.
    public static let otherPrincipal = CacheReason(code: "other-principal")
    /// Something is stored, but for other values of the nominated fields.
    public static let noVariant = CacheReason(code: "no-variant", section: "RFC 9111 §4.1")
    /// The stored response is past its lifetime.
    public static let stale = CacheReason(code: "stale", section: "RFC 9111 §4.2")
    /// Request or response ask for validation before use.
    public static let mustValidate = CacheReason(code: "must-validate", section: "RFC 9111 §5.2.2.4")
    /// A person marked the stored response: it must be confirmed before it is used again.
    public static let softPurged = CacheReason(code: "soft-purged", section: "RFC 9111 §4.4")
    /// The store lost power, and with it perhaps the word that the stored response is invalid: it must be confirmed before it
    /// is used again.
    public static let storeLostPower = CacheReason(code: "store-lost-power", section: "RFC 9111 §4.4")
    /// Only a part of what was asked for is stored.
    public static let partial = CacheReason(code: "partial", section: "RFC 9111 §3.4")
    /// What is stored could not be read.
    public static let unreadable = CacheReason(code: "unreadable")

    // MARK: Why a response was not stored

    /// The status is interim or no status at all.
    public static let status = CacheReason(code: "status", section: "RFC 9111 §3")
    /// The status must never be stored: 428, 429, 431 or 511.
    public static let statusForbidsStoring = CacheReason(code: "status-forbids-storing", section: "RFC 6585")
    /// An error without a lifetime of its own would have taken the place of a stored response that is none.
    public static let negativeOverStored = CacheReason(code: "negative-over-stored", section: "RFC 9111 §4.3.3")
    /// No cache was asked: the pipeline has none.
    public static let noCache = CacheReason(code: "no-cache")
    /// A part that cannot be stored: no strong validator, or no range to be understood.
    public static let partialContent = CacheReason(code: "partial-content", section: "RFC 9111 §3.3")
    /// A 304 freshens what is stored and is not stored itself.
    public static let notModified = CacheReason(code: "not-modified", section: "RFC 9111 §4.3.4")
    /// `must-understand` with a status that is not understood.
    public static let notUnderstood = CacheReason(code: "must-understand", section: "RFC 9111 §5.2.2.3")
    /// The response says no-store.
    public static let responseNoStore = CacheReason(code: "response-no-store", section: "RFC 9111 §5.2.2.5")
    /// `private` in a shared cache.
    public static let privateResponse = CacheReason(code: "private", section: "RFC 9111 §5.2.2.7")
    /// An authorized request in a shared cache, and the response does not release it.
    public static let authorization = CacheReason(code: "authorization", section: "RFC 9111 §3.5")
    /// Vary holds `*`, or cannot be read.
    public static let varyStar = CacheReason(code: "vary-star", section: "RFC 9111 §4.1")
    /// Nothing says how long it is fresh, and its status allows no guess.
    public static let noFreshness = CacheReason(code: "no-freshness", section: "RFC 9111 §3")
    /// The body is shorter than it should be.
    public static let incomplete = CacheReason(code: "incomplete", section: "RFC 9111 §3.3")
    /// The response is no answer of an origin that could be stored: it was made on this side.
    public static let synthesized = CacheReason(code: "synthesized")
    /// What was sent for the response cannot be seen, so neither can whose it is.
    public static let hiddenRequest = CacheReason(code: "hidden-request")
    /// Another URL was sent than was looked up.
    public static let otherTarget = CacheReason(code: "other-target")
    /// The entry was invalidated or purged while the response was under way.
    public static let overtaken = CacheReason(code: "overtaken", section: "RFC 9111 §4.4")
    /// The entry is too large for the store.
    public static let tooLarge = CacheReason(code: "too-large")
    /// The store failed.
    public static let storeFailure = CacheReason(code: "store-failure")
}
