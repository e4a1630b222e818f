// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

extension CallContext {
    /// Tells the observers that a response was not stored.
    func tell(notStored reason: CacheReason) {
        emit(.responseNotStored) { event in
            event.notStoredReason = reason
            event.detail = reason.description
        }
    }
}
