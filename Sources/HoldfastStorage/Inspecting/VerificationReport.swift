// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
