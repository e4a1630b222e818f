// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A store whose contents can be verified and compacted while it is in use.
///
/// **Choose.** Any store of this module.
/// **Use.** `HTTPCache.verify(progress:)` and `HTTPCache.compact()`, or call it directly.
/// **Implement.** Both leave the store open and in service: lookups and writes continue, at most slower. A store that was opened
/// for reading only verifies, and refuses to compact with `.readOnly`.
public protocol InspectableStore: CacheStore {
    /// Reads every committed entry, including its whole body, and checks its checksums.
    ///
    /// Entries that fail a check are removed and counted, as on a lookup; a store that was opened for reading only counts them.
    /// This reads no clock and counts as no lookup. Entries that are added or removed meanwhile may or may not be checked.
    ///
    /// - Parameter progress: is called now and then, from any thread, one call at a time and never under a lock. The last call has
    ///   ``VerificationProgress/fraction`` 1, unless the verification ends early.
    /// - Throws: `.cancelled` soon after the task is cancelled, `.closed`, or `.io` if the device cannot be read at all. Damage is
    ///   a finding, not an error.
    func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport

    /// Returns space that no entry needs to the system: the space of entries that were removed or replaced.
    ///
    /// Evicts nothing. Never takes more space than the capacity, so a full store is compacted in steps.
    ///
    /// - Throws: `.cancelled` soon after the task is cancelled, with the work so far kept; `.closed`, `.io`, `.noSpace`.
    @discardableResult
    func compact() async throws(StoreError) -> CompactionReport
}

/// How far a verification has come.
public struct VerificationProgress: Sendable, Hashable {
    /// Entries checked so far.
    public var entries: Int
    /// Bytes of any kind read so far.
    public var bytesRead: Int
    /// Bytes to read in total, as known now; this may change while the store is in use.
    public var bytesTotal: Int

    /// Progress with these numbers.
    public init(entries: Int, bytesRead: Int, bytesTotal: Int) {
        self.entries = entries
        self.bytesRead = bytesRead
        self.bytesTotal = bytesTotal
    }

    /// The part that is done, from 0 to 1; 1 if there is nothing to do.
    public var fraction: Double {
        guard bytesTotal > 0 else { return 1 }
        return min(1, max(0, Double(bytesRead) / Double(bytesTotal)))
    }
}

/// What a verification found.
public struct VerificationReport: Sendable, Hashable {
    /// An entry, or a part of a file, that failed a check.
    public struct Damage: Sendable, Hashable {
        /// The primary key of the entry; nil if it is unknown.
        public var key: StoreKey?
        /// Where it was and which check failed, for people; contains no key, field or body.
        public var message: String

        /// Damage to the entry of this key.
        public init(key: StoreKey?, message: String) {
            self.key = key
            self.message = message
        }
    }

    /// The most findings in ``damage``.
    public static let maximumDamage = 1_000

    /// Entries that were checked, including damaged ones.
    public var entriesChecked = 0
    /// Bytes of bodies that were checked.
    public var bodyBytesChecked = 0
    /// Entries that failed a check.
    public var entriesDamaged = 0
    /// Entries that are encrypted with a key that is not available: their checksums were checked, but not their content.
    public var entriesSealed = 0
    /// The first ``maximumDamage`` findings.
    public private(set) var damage: [Damage] = []

    /// An empty report.
    public init() {}

    /// Whether all checked entries are intact.
    public var isClean: Bool { entriesDamaged == 0 && damage.isEmpty }

    /// Adds a finding, if there is room for it.
    public mutating func note(_ finding: Damage) {
        if damage.count < VerificationReport.maximumDamage { damage.append(finding) }
    }
}

/// What compacting a store did.
public struct CompactionReport: Sendable, Hashable {
    /// Bytes that the store took before, as counted against its capacity.
    public var bytesBefore: Int
    /// Bytes that it takes now.
    public var bytesAfter: Int
    /// Entries that were moved.
    public var entriesMoved: Int

    /// A report with these numbers.
    public init(bytesBefore: Int, bytesAfter: Int, entriesMoved: Int = 0) {
        self.bytesBefore = bytesBefore
        self.bytesAfter = bytesAfter
        self.entriesMoved = entriesMoved
    }

    /// Bytes returned to the system; 0 if the store grew meanwhile.
    public var bytesFreed: Int {
        let (freed, overflow) = bytesBefore.subtractingReportingOverflow(bytesAfter)
        return overflow ? 0 : max(0, freed)
    }
}
