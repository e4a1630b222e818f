// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Changes of the lower tier that others made: what a store that several processes share is told of.
extension TieredStore {
    /// Somebody else is changing, or has changed, a key below; from here on the upper tier is not asked for it until ``forgetOutsideChange(of:)``.
    package func noteOutsideChange(of key: StoreKey) {
        noteChange(of: key)
    }

    /// Takes what the upper tier holds of a key that ``noteOutsideChange(of:)`` told of.
    package func forgetOutsideChange(of key: StoreKey) async {
        await forget(key)
        noteChanged(key)
    }

    /// Changes below may be missed from here on: the upper tier is not asked until ``trustUpperTier()``.
    package func distrustUpperTier() {
        noteChange(of: nil)
    }

    /// Nothing is missed any more; what the upper tier holds from before is not believed again.
    package func trustUpperTier() async {
        await forgetAll()
        noteChanged(nil)
    }
}
