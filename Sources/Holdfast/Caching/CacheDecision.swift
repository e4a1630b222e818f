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
        _ reason: CacheReason,
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
