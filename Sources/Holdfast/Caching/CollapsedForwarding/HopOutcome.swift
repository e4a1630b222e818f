// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// What the cache made of a response on its way up.
struct HopOutcome: Sendable {
    /// The stored response that a 304 selected.
    var held: HeldResponse?
    /// The response as it is stored, or as it would be if the store could take it; nil where the rules forbid to store it.
    var storable: StoredResponse?
    /// The entry it is stored as, or would be.
    var entry: AdmittedEntry?
    /// Why nothing of the response was stored; nil where something was, or is being stored.
    var notStored: CacheReason?
    /// The entry that is being written while the body passes.
    var storing: StoringBody?
    /// Whether the rules let the answer be given to others that wait for the same.
    var mayBeShared = true

    /// What became of the response, for explanations.
    var storage: CacheDecision.Storage? {
        if let notStored { return .notStored(notStored) }
        return held == nil ? .stored : nil
    }

    /// Whether the response may be stored, whether or not the store took it.
    var isStorable: Bool { held != nil || storable != nil }

    /// Whether the response may answer other calls of the same key.
    var isShareable: Bool { isStorable && mayBeShared }

    /// Whether what was sent shows the principal and the target that were looked up, as all callers of the key have them.
    var isForWhoAsked: Bool {
        switch notStored {
        // Of what was made beneath nobody knows for whom.
        case .otherPrincipal, .otherTarget, .hiddenRequest, .synthesized: false
        default: true
        }
    }
}
