// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// When a stored response that is not fresh enough may still be served (RFC 5861, RFC 9111 §4.2.4).
///
/// Anything that forbids it overrides everything that allows it: `must-revalidate` and unqualified `no-cache` of the response, in a
/// shared cache also `proxy-revalidate` and `s-maxage`, and a request or call that asks for validation.
package struct StaleAllowance: Sendable, Hashable {
    /// While a revalidation runs in the background (RFC 5861 §3).
    package let whileRevalidating: Bool

    /// When the origin answers 500, 502, 503 or 504 (RFC 5861 §4).
    package let onError: Bool

    /// When no response arrives at all (RFC 9111 §4.2.4).
    package let whenDisconnected: Bool

    /// In no case.
    package static let none = StaleAllowance(whileRevalidating: false, onError: false, whenDisconnected: false)

    init(whileRevalidating: Bool, onError: Bool, whenDisconnected: Bool) {
        self.whileRevalidating = whileRevalidating
        self.onError = onError
        self.whenDisconnected = whenDisconnected
    }

    /// Decides for one stored response and one request.
    ///
    /// - Parameter options: with the rules for the response applied.
    init(
        _ stored: StoredResponse,
        request: CacheControl,
        demand: FreshnessDemand,
        standing: FreshnessStanding,
        options: CacheOptions
    ) {
        guard !stored.forbidsStale(options), !demand.asksValidation else {
            self = .none
            return
        }
        let staleness = standing.staleness
        // With a lifetime fixed by the cache, the response has no influence on what follows it.
        let told = options.fixedLifetime == nil ? stored.facts : nil
        let revalidating = told?.staleWhileRevalidate ?? options.staleWhileRevalidate.wholeSeconds
        let asked = request.staleIfError
        let onError =
            told?.staleIfError.map { max($0, asked ?? $0) } ?? asked ?? options.staleIfError.wholeSeconds
        // Without either, nobody knows whether the response was valid for more than a moment.
        let hasStanding = stored.hasValidator || stored.facts.lifetime(options).source != .none
        let ownLimit = hasStanding ? options.staleWhenDisconnected.wholeSeconds : 0
        let disconnected = max(ownLimit, onError, revalidating)
        self.init(
            // A caller with its own limit on age or freshness would not accept a response that is still being refreshed.
            whileRevalidating: standing.isStale && staleness <= revalidating && revalidating > 0 && demand.isPlain,
            onError: onError > 0 && staleness <= onError,
            whenDisconnected: disconnected > 0 && staleness <= disconnected
        )
    }

    /// The reason for serving the stored response after a failure; nil if that is not allowed.
    ///
    /// If a request is not sent because the server asked for fewer, the rule for the response that asked applies.
    ///
    /// - Parameters:
    ///   - failure: how the last attempt failed.
    ///   - isImpatient: whether the caller accepts a stale response instead of waiting; false by default.
    package func reason(after failure: AttemptFailure, isImpatient: Bool = false) -> CacheReason? {
        if failure.kind == .throttled {
            if onError { return .staleIfError }
            return isImpatient && whenDisconnected ? .patience : nil
        }
        return failure.isDisconnection && whenDisconnected ? .disconnected : nil
    }
}

extension StatusCode {
    /// Whether stale-if-error applies to the status: 500, 502, 503 or 504 (RFC 5861 §4).
    public var isOriginError: Bool {
        switch rawValue {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}

extension AttemptFailure {
    /// Whether the origin could not be reached, so that the cache counts as disconnected (RFC 9111 §4.2.4). A refused certificate,
    /// a request that cannot be sent, or an invalid response does not count.
    package var isDisconnection: Bool {
        guard progress < .headReceived else { return false }
        return switch kind {
        case .resolve, .connect, .timeout, .tls, .connectionLost, .protocolError, .offline, .other: true
        default: false
        }
    }
}
