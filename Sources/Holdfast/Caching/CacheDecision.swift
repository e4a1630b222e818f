// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// What a cache did for one response, and why: `response.cacheDecision`.
public struct CacheDecision: Sendable, Hashable, CustomStringConvertible {
    /// How the response came about.
    public enum Outcome: Sendable, Hashable {
        /// From the store, without waiting for the origin.
        case hit
        /// From the store, after the origin confirmed it.
        case revalidated
        /// From the exchange of an equal call.
        case collapsed
        /// From the origin, after a look-up.
        case miss
        /// From the origin, without a look-up.
        case bypass
        /// From nowhere: nothing usable is stored, and nothing was to be sent.
        case unsatisfiable
    }

    /// What became of the response itself.
    public enum Storage: Sendable, Hashable {
        /// It is stored, or is being stored while its body is read.
        case stored
        /// It is not stored, for this reason.
        case notStored(CacheReason)
    }

    /// How the response came about.
    public let outcome: Outcome

    /// Why, with the clause the rule comes from: why a hit is one, why the origin was asked, why the store was passed by.
    public let reason: CacheReason

    /// What became of a response from the origin; nil for one from the store.
    public let storage: Storage?

    /// The age of the response in seconds when it was handed out; nil for one without a stored counterpart.
    public let age: Int64?

    /// How many seconds it stays fresh, negative once it is stale; nil for one without a stored counterpart.
    public let freshnessLeft: Int64?

    /// The origin's status where a stored response stood in for it.
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

    /// One line for logs, as in "miss: stale (RFC 9111 §4.2); stored".
    public var description: String {
        var text = "\(outcome): \(reason)"
        switch storage {
        case .stored: text += "; stored"
        case .notStored(let reason): text += "; not stored: \(reason)"
        case nil: break
        }
        return text
    }
}

/// Writes what a cache did into the responses it hands up, for those who read fields rather than properties.
struct CacheStatusField: Sendable {
    /// The cache's name.
    let name: String
    /// Whether the key is shown too.
    let showsKey: Bool

    /// A report by these options; nil where the cache has no name to sign with.
    init?(_ options: CacheOptions) {
        guard let name = options.cacheName else { return nil }
        self.name = name
        showsKey = options.showsKeyInCacheStatus
    }

    /// Appends this cache's entry to what upstream said (RFC 9211 §2).
    ///
    /// What upstream said of a stored response stays with it, since it tells how that response came here. Of this cache
    /// nothing is in there: a response is stored before its entry is written. What was made on this side gets none.
    func append(to response: inout Response, key: CacheKey?) {
        guard let handling = response.cacheDecision?.handling else { return }
        let entry = handling.entry(of: name, key: showsKey ? key?.description : nil)
        response.fields[.cacheStatus] = CacheStatus.appending(entry, to: response.fields[.cacheStatus])
    }
}

extension CacheDecision {
    /// The decision in the words of RFC 9211; nil where nothing from a store or an origin was handed up.
    var handling: CacheHandling? {
        let handled: CacheHandling.Outcome
        switch outcome {
        case .hit: handled = .hit
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
            isStored: storage == .stored
        )
    }
}

extension CallContext {
    /// Tells the observers that a response was not stored.
    func tell(notStored reason: CacheReason) {
        emit(.responseNotStored) { event in
            event.notStoredReason = reason
            event.detail = reason.description
        }
    }
}

extension Response {
    /// How each cache on the way handled the request, the one closest to the origin first (RFC 9211).
    ///
    /// Read from the Cache-Status field at each reading, in linear time: entries of caches upstream, and last the one of this
    /// side's cache where `CacheOptions.cacheName` is set. nil where the field is missing or malformed. Anyone on the way
    /// can write the field, so it is for people and metrics; ``cacheDecision`` is what this side knows for certain.
    public var cacheStatus: CacheStatus? {
        CacheStatus(fields)
    }
}
