// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What one call asks of the cache, beside what its request's own Cache-Control says.
///
/// The stricter of both holds, except that a tolerance given here replaces the field's.
public struct CacheDirective: Sendable, Hashable {
    /// Skip the look-up; the response is stored as usual.
    public var reload: Bool

    /// Use a stored response only after the origin confirmed it, as `no-cache` does (RFC 9111 §5.2.1.4).
    public var revalidate: Bool

    /// Send nothing: answer from the store or not at all (RFC 9111 §5.2.1.7).
    public var onlyIfCached: Bool

    /// Neither look up nor store (RFC 9111 §5.2.1.5).
    public var noStore: Bool

    /// How far past its lifetime a response may be used; nil leaves it to the request's fields.
    public var maxStale: Duration?

    /// How long the response must stay fresh from now on; nil leaves it to the request's fields.
    public var minFresh: Duration?

    /// Take anything stored that matches, whatever its age and whatever it says of revalidation.
    public var ignoresAge: Bool

    /// How long to wait for the origin while something stale is at hand that may stand in; nil leaves it to the cache's options.
    public var staleAfter: Duration?

    /// How long a response of this call counts as fresh where its server does not say; nil leaves it to the cache's rules.
    ///
    /// Kept with the entry. It replaces the guess from Last-Modified for a 2xx or 3xx that may be guessed at (RFC 9111 §4.2.2),
    /// and nothing the server says: max-age, Expires, no-cache and no-store stand. Negative counts as zero.
    public var lifetime: Duration?

    /// Creates a directive; by default it asks for nothing special.
    public init(
        reload: Bool = false,
        revalidate: Bool = false,
        onlyIfCached: Bool = false,
        noStore: Bool = false,
        maxStale: Duration? = nil,
        minFresh: Duration? = nil,
        ignoresAge: Bool = false,
        lifetime: Duration? = nil
    ) {
        self.reload = reload
        self.revalidate = revalidate
        self.onlyIfCached = onlyIfCached
        self.noStore = noStore
        self.maxStale = maxStale
        self.minFresh = minFresh
        self.ignoresAge = ignoresAge
        self.lifetime = lifetime
    }

    /// Nothing special.
    public static let `default` = CacheDirective()

    /// Skip the look-up and store the response.
    public static let reload = CacheDirective(reload: true)

    /// Confirm with the origin before use.
    public static let revalidate = CacheDirective(revalidate: true)

    /// Answer from the store or not at all.
    public static let onlyIfCached = CacheDirective(onlyIfCached: true)

    /// Pass the cache by.
    public static let noStore = CacheDirective(noStore: true)

    /// Accept a response this far past its lifetime.
    ///
    /// - Parameter duration: the greatest staleness; negative counts as none.
    public static func maxStale(_ duration: Duration) -> CacheDirective {
        CacheDirective(maxStale: duration)
    }

    /// Count the response as fresh for so long where its server does not say.
    ///
    /// - Parameter duration: the lifetime, counted from the making of the response; negative counts as zero.
    public static func lifetime(_ duration: Duration) -> CacheDirective {
        CacheDirective(lifetime: duration)
    }
}
