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

/// What a verification found.
public struct VerificationReport: Sendable, Hashable {
    /// One entry, or a stretch of a file, that failed a check.
    public struct Damage: Sendable, Hashable {
        /// The primary key of the entry; nil where it cannot be told.
        public var key: StoreKey?
        /// Where it lay and what did not hold, for people; shows no key, field or body.
        public var message: String

        /// Damage to the entry of this key.
        public init(key: StoreKey?, message: String) {
            self.key = key
            self.message = message
        }
    }

    /// How many findings ``damage`` holds at most.
    public static let maximumDamage = 1_000

    /// Entries that were checked, damaged ones included.
    public var entriesChecked = 0
    /// Bytes of bodies that were checked.
    public var bodyBytesChecked = 0
    /// Entries that failed a check.
    public var entriesDamaged = 0
    /// Entries that are encrypted with a key that is not at hand: their checksums were checked, but not what is in them.
    public var entriesSealed = 0
    /// The findings, the first ``maximumDamage`` of them.
    public private(set) var damage: [Damage] = []

    /// Nothing checked, nothing found.
    public init() {}

    /// Whether all that was checked is whole.
    public var isClean: Bool { entriesDamaged == 0 && damage.isEmpty }

    /// Notes a finding, as long as there is room for it.
    public mutating func note(_ finding: Damage) {
        if damage.count < VerificationReport.maximumDamage { damage.append(finding) }
    }
}

/// What packing a store did.
public struct CompactionReport: Sendable, Hashable {
    /// Bytes that the store took before, as it counts them against its capacity.
    public var bytesBefore: Int
    /// Bytes that it takes now.
    public var bytesAfter: Int
    /// Entries that were moved.
    public var entriesMoved: Int

    /// A report of these numbers.
    public init(bytesBefore: Int, bytesAfter: Int, entriesMoved: Int = 0) {
        self.bytesBefore = bytesBefore
        self.bytesAfter = bytesAfter
        self.entriesMoved = entriesMoved
    }

    /// Bytes given back; 0 where the store grew meanwhile.
    public var bytesFreed: Int {
        let (freed, overflow) = bytesBefore.subtractingReportingOverflow(bytesAfter)
        return overflow ? 0 : max(0, freed)
    }
}
