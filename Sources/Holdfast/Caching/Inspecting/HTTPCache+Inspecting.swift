// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage

/// Looking into a cache: what it holds, whether that is whole, and packing it.
extension HTTPCache {
    /// Lists stored responses, without reading their bodies.
    ///
    /// Looks at every entry of the store, a page at a time, so that memory stays the same however much is stored. The store may be
    /// used meanwhile: an entry that stays is listed once, one that comes or goes once or not at all. Listing counts as no
    /// hit and moves nothing in the order of eviction. Entries of which the cache could make no use (another format) are
    /// left out.
    ///
    /// - Parameters:
    ///   - selection: which responses; all by default.
    ///   - pageSize: entries held at a time; 256 by default, at least 1.
    ///   - now: the time by which ages are judged; the system's by default.
    /// - Returns: a sequence whose iteration throws `StoreError`; `.cancelled` soon after the task is cancelled.
    public func entries(
        _ selection: CacheSelection = .all,
        pageSize: Int = 256,
        now: Timestamp = SystemClock().timestamp
    ) -> CacheEntries {
        CacheEntries(cache: self, selection: selection, pageSize: max(1, pageSize), now: now)
    }

    /// Reads everything that is stored and checks it; see `InspectableStore.verify(_:)`.
    ///
    /// - Parameter progress: is told how far it is, from any thread; nothing by default.
    /// - Throws: `StoreError`: `.badConfiguration` where the store has no such operation; `.cancelled`, `.closed`, `.io`.
    public func verify(
        progress: @escaping @Sendable (VerificationProgress) -> Void = { _ in }
    ) async throws(StoreError) -> VerificationReport {
        try await inspectable.verify(progress)
    }

    /// Gives space back that nothing stored needs; see `InspectableStore.compact()`.
    ///
    /// - Throws: as ``verify(progress:)``, and `.noSpace`.
    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        try await inspectable.compact()
    }

    private var inspectable: any InspectableStore {
        get throws(StoreError) {
            if let store = store as? any InspectableStore { return store }
            throw StoreError(
                .badConfiguration,
                "A \(type(of: store)) can be neither verified nor compacted; make it conform to InspectableStore."
            )
        }
    }
}

extension VerificationReport.Damage {
    /// The URI of the damaged response; nil where it cannot be told.
    public var target: TargetURI? {
        key.flatMap { CacheKey.Parts(framed: $0.bytes) }.flatMap { try? TargetURI($0.target) }
    }
}
