// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a cache did for one response, and why: `response.cacheDecision`.
public struct CacheDecision: Sendable, Hashable, CustomStringConvertible {
    /// Where the response came from.
    public enum Outcome: Sendable, Hashable {
        /// From the store, without waiting for the origin.
        case hit
        /// From the store although stale, because the origin failed, could not be reached, or took too long.
        case stale
        /// From the store, after the origin confirmed it.
        case revalidated
        /// From the exchange of an equal call.
        case collapsed
        /// From the origin, after a lookup.
        case miss
        /// From the origin, without a lookup.
        case bypass
        /// From nowhere: nothing usable is stored, and the call said not to send a request.
        case unsatisfiable

        /// Its name in logs, labels and JSON. No reflection, which would cost a microsecond for each metric.
        package var word: String {
            switch self {
            case .hit: "hit"
            case .stale: "stale"
            case .revalidated: "revalidated"
            case .collapsed: "collapsed"
            case .miss: "miss"
            case .bypass: "bypass"
            case .unsatisfiable: "unsatisfiable"
            }
        }
    }

    /// What happened to the response itself.
    public enum Storage: Sendable, Hashable {
        /// It is stored.
        case stored
        /// It is stored once its body has been read to the end, and its caller has accepted it. If the body is dropped before
        /// that, nothing is stored, unless little of it is missing (`CacheOptions.abandonedBodyAllowance`).
        case storing
        /// It is not stored, for this reason.
        case notStored(CacheReason)
    }

    /// Where the response came from.
    public let outcome: Outcome

    /// Why, with the clause that the rule comes from: why it is a hit, why the origin was asked, or why the store was bypassed.
    public let reason: CacheReason

    /// What happened to a response from the origin; nil for one from the store.
    public let storage: Storage?

    /// The age of the response in seconds when it was returned; nil for one without a stored counterpart.
    public let age: Int64?

    /// How many seconds it stays fresh, negative once it is stale; nil for one without a stored counterpart.
    public let freshnessLeft: Int64?

    /// The origin's status, if a stored response replaced its response.
    var originStatus: StatusCode?

    init(
        _ outcome: Outcome,
        reason: CacheReason,
        storage: Storage? = nil,
        age: Int64? = nil,
        freshnessLeft: Int64? = nil
    ) {
        self.outcome = outcome
        self.reason = reason
        self.storage = storage
        self.age = age
        self.freshnessLeft = freshnessLeft
    }

    /// One line for logs, such as "miss: stale (RFC 9111 §4.2); stored".
    public var description: String {
        var text = "\(outcome.word): \(reason)"
        switch storage {
        case .stored: text += "; stored"
        case .storing: text += "; storing"
        case .notStored(let reason): text += "; not stored: \(reason)"
        case nil: break
        }
        return text
    }
}

/// Writes what the cache did into the responses that it returns, for code that reads fields instead of properties.
struct CacheStatusField: Sendable {
    /// The cache's name.
    let name: String
    /// Whether the key is included.
    let showsKey: Bool

    /// A report with these options; nil if the cache has no name. Stale responses always get one: code that sees the response as
    /// Foundation shows it has no other way to recognize them.
    init?(_ options: CacheOptions, isStale: Bool) {
        guard let name = options.cacheName ?? (isStale ? CacheStatusField.defaultName : nil) else { return nil }
        self.name = name
        showsKey = options.showsKeyInCacheStatus
    }

    private static let defaultName = "holdfast"

    /// Appends this cache's entry to what upstream said (RFC 9211 §2).
    ///
    /// A stored response keeps what upstream caches said about it. It contains nothing of this cache, because a response is stored
    /// before its entry is added. Locally made responses get no entry.
    func append(to response: inout Response, key: CacheKey?) {
        guard let decision = response.cacheDecision else { return }
        append(to: &response.fields, decision, key: key?.description)
    }

    /// The same for the fields of a response about which this was decided.
    ///
    /// - Parameter key: the description of its key.
    func append(to fields: inout HeaderFields, _ decision: CacheDecision, key: @autoclosure () -> String?) {
        guard let handling = decision.handling else { return }
        let entry = handling.entry(of: name, key: showsKey ? key() : nil)
        fields[.cacheStatus] = CacheStatus.appending(entry, to: fields[.cacheStatus])
    }
}

extension CacheDecision {
    /// The decision in terms of RFC 9211; nil if the response came neither from a store nor from an origin.
    var handling: CacheHandling? {
        let handled: CacheHandling.Outcome
        switch outcome {
        case .hit, .stale: handled = .hit
        case .revalidated: handled = .revalidated
        case .collapsed: handled = .collapsed
        case .miss: handled = .forwarded
        case .bypass: handled = .bypassed
        case .unsatisfiable: return nil
        }
        return CacheHandling(
            handled,
            reason: reason,
            originStatus: originStatus,
            freshnessLeft: freshnessLeft,
            isStored: storage == .stored || storage == .storing
        )
    }
}

extension CallContext {
    /// Tells the statistics and the observers that a response was not stored; if storing had begun, also a prefetch that waits for
    /// its end.
    func tell(notStored reason: CacheReason, metrics: CallMetrics, hadBegun: Bool) {
        metrics.count(notStored: reason)
        if hadBegun { options.storing?.note(reason) }
        emit(.responseNotStored) { event in
            event.notStoredReason = reason
            event.detail = reason.description
        }
    }
}

extension Response {
    /// How each cache on the way handled the request, the one closest to the origin first (RFC 9211).
    ///
    /// Parsed from the Cache-Status field on each read, in linear time: entries of caches upstream, and last that of the local
    /// cache if `CacheOptions.cacheName` is set. nil if the field is missing or malformed. Anyone on the way can write the
    /// field, so use it only for people and metrics; ``cacheDecision`` is what the local cache knows for certain.
    public var cacheStatus: CacheStatus? {
        CacheStatus(fields)
    }
}
