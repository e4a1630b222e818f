// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What can be checked and packed is the lower tier: the upper one holds copies.
extension TieredStore: InspectableStore {
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        try await inspectable.verify(progress)
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        try await inspectable.compact()
    }

    private var inspectable: any InspectableStore {
        get throws(StoreError) {
            if let lower = lower as? any InspectableStore { return lower }
            throw StoreError(
                .badConfiguration,
                "The lower tier can be neither verified nor compacted; make it conform to InspectableStore."
            )
        }
    }
}
