// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A store whose contents can be checked and packed while it is in use.
///
/// **Choose.** Any store of this module.
/// **Use.** `HTTPCache.verify(progress:)` and `HTTPCache.compact()`, or call it as below.
/// **Implement.** Both leave the store open and in service: look-ups and writes go on beside them, at most slowed down. A store
/// that opened its contents for reading only verifies and refuses to compact, with `.readOnly`.
public protocol InspectableStore: CacheStore {
    /// Reads every committed entry, its whole body included, and checks what the store keeps for that purpose.
    ///
    /// What fails a check is removed and counted, as it would be on a look-up; a store that was opened for reading only counts
    /// it and leaves it. Looks at no clock and counts as no look-up. Entries that come or go meanwhile are checked or not.
    ///
    /// - Parameter progress: is told now and then how far it is, from any thread, one call at a time and never under a lock;
    ///   the last call has ``VerificationProgress/fraction`` 1, unless the verification ends early.
    /// - Throws: `.cancelled` soon after the task was cancelled, `.closed`, `.io` where the device cannot be read at all.
    ///   Damage is a finding and no error.
    func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport

    /// Gives back to the system what no entry needs: space of entries that were removed or replaced.
    ///
    /// Evicts nothing. Takes no more space than the capacity at any instant, so that a full store is packed in steps.
    ///
    /// - Throws: `.cancelled` soon after the task was cancelled, with what was done so far kept; `.closed`, `.io`, `.noSpace`.
    @discardableResult
    func compact() async throws(StoreError) -> CompactionReport
}

/// How far a verification is.
public struct VerificationProgress: Sendable, Hashable {
    /// Entries checked so far.
    public var entries: Int
    /// Bytes read so far, of whatever kind.
    public var bytesRead: Int
    /// Bytes to read in all, as known now; it may change while the store is in use.
    public var bytesTotal: Int

    /// So much of the whole.
    public init(entries: Int, bytesRead: Int, bytesTotal: Int) {
        self.entries = entries
        self.bytesRead = bytesRead
        self.bytesTotal = bytesTotal
    }

    /// The part that is done, from 0 to 1; 1 where there is nothing to do.
    public var fraction: Double {
        guard bytesTotal > 0 else { return 1 }
        return min(1, max(0, Double(bytesRead) / Double(bytesTotal)))
    }
}
