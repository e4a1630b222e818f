// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Why a cache did what it did: a stable code, and the clause that the rule comes from.
///
/// Equal codes mean equal reasons; the set is open, since rules may be added.
public struct CacheReason: Sendable, Hashable, CustomStringConvertible {
    /// The stable code, suitable for metric labels.
    public let code: String

    /// The clause that the rule comes from; empty for a rule of this library.
    public let section: String

    /// Further details, such as a limit; ignored in comparisons.
    public let detail: String

    /// Creates a reason.
    public init(code: String, section: String = "", detail: String = "") {
        self.code = code
        self.section = section
        self.detail = detail
    }

    /// Code, clause and detail: "too-large (limit: 8388608 bytes)".
    public var description: String {
        let more = [section, detail].filter { !$0.isEmpty }
        return more.isEmpty ? code : "\(code) (\(more.joined(separator: "; ")))"
    }

    /// Whether code and clause are the same.
    public static func == (left: CacheReason, right: CacheReason) -> Bool {
        left.code == right.code && left.section == right.section
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(section)
    }

    // MARK: Why the store answered

    /// The stored response is fresh.
    public static let fresh = CacheReason(code: "fresh", section: "RFC 9111 §4.2")
    /// The caller accepts a stale response: max-stale, or any age at all.
    public static let acceptedStale = CacheReason(code: "accepted-stale", section: "RFC 9111 §5.2.1.2")
    /// The response may be used while it is being revalidated.
    public static let staleWhileRevalidate = CacheReason(code: "stale-while-revalidate", section: "RFC 5861 §3")
    /// The origin failed, and a stale response was used instead.
    public static let staleIfError = CacheReason(code: "stale-if-error", section: "RFC 5861 §4")
    /// The origin could not be reached, and a stale response was used instead.
    public static let disconnected = CacheReason(code: "disconnected", section: "RFC 9111 §4.2.4")
    /// The origin took longer than the caller waits if there is a stale response to use.
    public static let patience = CacheReason(code: "patience", section: "RFC 9111 §4.2.4")
    /// The call waited while another process that shares the store fetched the same response, and was answered with what that
    /// process stored.
    public static let filledElsewhere = CacheReason(code: "filled-elsewhere", section: "RFC 9111 §4")

    // MARK: Why the origin was asked

    /// The method is not answered from a store, or its responses are not stored.
    public static let method = CacheReason(code: "method", section: "RFC 9111 §3")
    /// The request states a condition that only the origin can evaluate.
    public static let originCondition = CacheReason(code: "origin-condition", section: "RFC 9111 §4.3.2")
    /// The call asks for a new response.
    public static let reload = CacheReason(code: "reload")
    /// The request names another host than its URI.
    public static let host = CacheReason(code: "host", section: "RFC 9110 §7.2")
    /// The request has content, which is not part of its key.
    public static let content = CacheReason(code: "content", section: "RFC 9110 §9.3.1")
    /// The URL is not an http or https URI.
    public static let target = CacheReason(code: "target", section: "RFC 9110 §4.2")
    /// The call or the request says no-store.
    public static let requestNoStore = CacheReason(code: "request-no-store", section: "RFC 9111 §5.2.1.5")
    /// A rule of the cache says that nothing is stored for the route, or nothing with this content type (``CacheRule/neverStore``).
    public static let neverStore = CacheReason(code: "never-store")
    /// Nothing is stored for the URI.
    public static let notStored = CacheReason(code: "not-stored", section: "RFC 9111 §4")
    /// The principals differ. As the reason of a miss: nothing is stored for this request's principal, but something was for
    /// another. As the reason why a response was not stored: the credentials that were sent are not those that were looked up.
    ///
    /// For a miss it is a hint: since it was opened, the cache remembers for a few thousand URIs who stored last, and gives
    /// ``notStored`` if it does not know. The other principal's response may be gone by then.
    public static let otherPrincipal = CacheReason(code: "other-principal")
    /// Something is stored, but for other values of the nominated fields.
    public static let noVariant = CacheReason(code: "no-variant", section: "RFC 9111 §4.1")
    /// The stored response is past its lifetime.
    public static let stale = CacheReason(code: "stale", section: "RFC 9111 §4.2")
    /// The request or the response asks for validation before use.
    public static let mustValidate = CacheReason(code: "must-validate", section: "RFC 9111 §5.2.2.4")
    /// The stored response was marked with a soft purge: it must be confirmed before it is used again.
    public static let softPurged = CacheReason(code: "soft-purged", section: "RFC 9111 §4.4")
    /// The store lost power, and perhaps with it the information that the stored response is invalid: it must be confirmed
    /// before it is used again.
    public static let storeLostPower = CacheReason(code: "store-lost-power", section: "RFC 9111 §4.4")
    /// Only part of what was requested is stored.
    public static let partial = CacheReason(code: "partial", section: "RFC 9111 §3.4")
    /// What is stored could not be read.
    public static let unreadable = CacheReason(code: "unreadable")

    // MARK: Why a response was not stored

    /// The status is interim or no status at all.
    public static let status = CacheReason(code: "status", section: "RFC 9111 §3")
    /// The status must never be stored: 425, 428, 429, 431 or 511.
    public static let statusForbidsStoring = CacheReason(code: "status-forbids-storing", section: "RFC 6585")
    /// An error would have replaced a stored response that may be served in its place, or, if it states no lifetime, one that is
    /// not an error.
    public static let negativeOverStored = CacheReason(code: "negative-over-stored", section: "RFC 9111 §4.3.3")
    /// No cache was asked: the pipeline has none.
    public static let noCache = CacheReason(code: "no-cache")
    /// A part that cannot be stored: it has no strong validator, or a range that cannot be understood.
    public static let partialContent = CacheReason(code: "partial-content", section: "RFC 9111 §3.3")
    /// A 304 freshens what is stored and is not stored itself.
    public static let notModified = CacheReason(code: "not-modified", section: "RFC 9111 §4.3.4")
    /// `must-understand` with a status that is not understood.
    public static let notUnderstood = CacheReason(code: "must-understand", section: "RFC 9111 §5.2.2.3")
    /// The response says no-store.
    public static let responseNoStore = CacheReason(code: "response-no-store", section: "RFC 9111 §5.2.2.5")
    /// `private` in a shared cache.
    public static let privateResponse = CacheReason(code: "private", section: "RFC 9111 §5.2.2.7")
    /// The request had Authorization in a shared cache, and the response does not allow storing it.
    public static let authorization = CacheReason(code: "authorization", section: "RFC 9111 §3.5")
    /// Vary holds `*`, or cannot be read.
    public static let varyStar = CacheReason(code: "vary-star", section: "RFC 9111 §4.1")
    /// Nothing says how long the response is fresh, and a lifetime may not be estimated for its status.
    public static let noFreshness = CacheReason(code: "no-freshness", section: "RFC 9111 §3")
    /// The body is shorter than it should be.
    public static let incomplete = CacheReason(code: "incomplete", section: "RFC 9111 §3.3")
    /// The response was made locally and not by an origin, so it is not stored.
    public static let synthesized = CacheReason(code: "synthesized")
    /// The request that was sent cannot be seen, so it is unknown whose response it is.
    public static let hiddenRequest = CacheReason(code: "hidden-request")
    /// The URL that was sent is not the one that was looked up.
    public static let otherTarget = CacheReason(code: "other-target")
    /// The entry was invalidated or purged while the response was on its way.
    public static let overtaken = CacheReason(code: "overtaken", section: "RFC 9111 §4.4")
    /// The entry is too large for the store.
    public static let tooLarge = CacheReason(code: "too-large")
    /// The entry is too large for the store: one may take `limit` bytes, including key and fields. Equals ``tooLarge``.
    public static func tooLarge(limit: Int) -> CacheReason {
        CacheReason(code: "too-large", detail: "limit: \(limit) bytes")
    }
    /// The store failed.
    public static let storeFailure = CacheReason(code: "store-failure")
    /// The store failed in this way, such as `no-space`. Equals ``storeFailure``.
    public static func storeFailure(detail: String) -> CacheReason {
        CacheReason(code: "store-failure", detail: detail)
    }
    /// The caller's acceptance rejected the response.
    public static let notAccepted = CacheReason(code: "not-accepted")
}
