// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// In which cases a stored response that is not fresh enough may stand in all the same (RFC 5861, RFC 9111 §4.2.4).
///
/// What forbids it wins over everything that allows it: `must-revalidate` and unqualified `no-cache` of the response, in a
/// shared cache also `proxy-revalidate` and `s-maxage`, and a request or call that asks for validation.
public struct StaleAllowance: Sendable, Hashable {
    /// While a revalidation runs in the background (RFC 5861 §3).
    public let whileRevalidating: Bool

    /// When the origin answers 500, 502, 503 or 504 (RFC 5861 §4).
    public let onError: Bool

    /// When no response comes at all (RFC 9111 §4.2.4).
    public let whenDisconnected: Bool

    /// In no case.
    public static let none = StaleAllowance(whileRevalidating: false, onError: false, whenDisconnected: false)

    init(whileRevalidating: Bool, onError: Bool, whenDisconnected: Bool) {
        self.whileRevalidating = whileRevalidating
        self.onError = onError
        self.whenDisconnected = whenDisconnected
    }

    /// Judges one stored response for one request.
    init(
        _ stored: StoredResponse,
        request: CacheControl,
        demand: FreshnessDemand,
        standing: FreshnessStanding,
        options: CacheOptions
    ) {
        if let ruled = options.ruled(for: stored) {
            self.init(stored, request: request, demand: demand, standing: standing, options: ruled)
            return
        }
        guard !stored.forbidsStale(options), !demand.asksValidation else {
            self = .none
            return
        }
        let staleness = standing.staleness
        // With a lifetime of the cache's own the response has no say in what follows it.
        let told = options.fixedLifetime == nil ? stored.cacheControl : CacheControl(HeaderFields())
        let revalidating = told.staleWhileRevalidate ?? options.staleWhileRevalidate.wholeSeconds
        let asked = request.staleIfError
        let onError =
            told.staleIfError.map { max($0, asked ?? $0) } ?? asked ?? options.staleIfError.wholeSeconds
        // Of a response with neither nobody knows whether it was ever good for more than the moment.
        let hasStanding = stored.hasValidator || stored.freshnessLifetime(options).source != .none
        let ownLimit = hasStanding ? options.staleWhenDisconnected.wholeSeconds : 0
        let disconnected = max(ownLimit, onError, revalidating)
        self.init(
            // A caller that sets a limit to age or freshness of its own would not take what a refresh is still to replace.
            whileRevalidating: standing.isStale && staleness <= revalidating && revalidating > 0 && demand.isPlain,
            onError: onError > 0 && staleness <= onError,
            whenDisconnected: disconnected > 0 && staleness <= disconnected
        )
    }

    /// As what the stored response may stand in after a failure; nil where it may not.
    ///
    /// What is not sent because the server asked for less is answered as the response that said so would be.
    ///
    /// - Parameters:
    ///   - failure: what the last attempt ended with.
    ///   - isImpatient: whether the caller takes something stale rather than wait; false by default.
    public func reason(after failure: AttemptFailure, isImpatient: Bool = false) -> CacheReason? {
        if failure.kind == .throttled {
            if onError { return .staleIfError }
            return isImpatient && whenDisconnected ? .patience : nil
        }
        return failure.isDisconnection && whenDisconnected ? .disconnected : nil
    }
}

extension StatusCode {
    /// Whether the status is the kind of error that stale-if-error speaks of: 500, 502, 503 or 504 (RFC 5861 §4).
    public var isOriginError: Bool {
        switch rawValue {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}

extension AttemptFailure {
    /// Whether the failure means that the origin could not be reached, so that a cache counts as disconnected
    /// (RFC 9111 §4.2.4); a refused certificate, a request that cannot be sent or an answer that makes no sense does not.
    public var isDisconnection: Bool {
        guard progress < .headReceived else { return false }
        return switch kind {
        case .resolve, .connect, .timeout, .tls, .connectionLost, .protocolError, .offline, .other: true
        default: false
        }
    }
}
