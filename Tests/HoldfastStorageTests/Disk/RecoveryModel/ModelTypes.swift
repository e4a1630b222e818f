// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the model of the log-structured store knows of one record.
struct ModelRecord: Hashable {
    enum Kind: UInt8 { case entry, keyTombstone, variantTombstone, tagMark, prefixMark }
    var kind: Kind
    /// The identity of an entry or variant tombstone, the key of a key tombstone, zero for marks.
    var subject: UInt8
    var order: UInt8
    var horizon: UInt8 = 0
    var isTagged = false
    /// The number of its blob, zero for none.
    var blob: UInt8 = 0
    var isPinned = false
    /// The order of the put whose body it bears.
    var body: UInt8 = 0
}

/// A segment file: places for two records; an empty place is reserved, or its write never came.
struct ModelSegment: Hashable {
    static let places = 2
    var number: UInt8
    var isMain: Bool
    var epoch: UInt8
    var records: [ModelRecord?] = []
}

struct ModelBlob: Hashable {
    var number: UInt8
    /// The order of the put that wrote it.
    var body: UInt8
}

struct ModelRow: Hashable {
    var segment: UInt8
    var place: UInt8
    var record: ModelRecord
    var wasHit = false
    var shadows = false
}

/// A record that has its order, and a place unless a broken rule gives that later, but is not written yet.
struct ModelPendingWrite: Hashable {
    enum Kind: UInt8 { case put, freshen, carry, removal, evictionTombstone, mark, purgeAll }
    var kind: Kind
    var record: ModelRecord
    var segment: UInt8 = 0
    var place: UInt8 = 0
    var isSuperseded = false
    /// The segment that waits for it before it goes.
    var reclaim: UInt8 = 0
    /// Blobs to unlink once it is written.
    var blobs: [UInt8] = []
}

struct ModelReclaim: Hashable {
    var segment: UInt8
    var cursor: UInt8 = 0
    var blobs: [UInt8] = []
}

/// A record of which nobody knows whether it lies on the disk, since its write failed.
struct ModelUncertainWrite: Hashable {
    var identity: UInt8
    var order: UInt8
}

/// Rules that a search leaves out, to show that it would notice.
struct ModelOmissions: OptionSet, Hashable {
    let rawValue: UInt32
    /// Tombstones and marks are not carried forward.
    static let horizon = ModelOmissions(rawValue: 1 << 0)
    /// A row that shadows goes without a tombstone.
    static let shadowTombstone = ModelOmissions(rawValue: 1 << 1)
    /// The tombstone of an eviction takes a new order instead of the order of the row that goes.
    static let evictionKeepsOrder = ModelOmissions(rawValue: 1 << 2)
    /// A row does not shadow the older records that are still in flight or may linger.
    static let flightShadows = ModelOmissions(rawValue: 1 << 3)
    /// A put in flight is published even when a newer record of its identity came and went.
    static let supersededWrites = ModelOmissions(rawValue: 1 << 4)
    /// A removal that finds no row writes nothing.
    static let removalWithoutRow = ModelOmissions(rawValue: 1 << 5)
    /// A segment goes before the records that must outlive it are written.
    static let writeBeforeUnlink = ModelOmissions(rawValue: 1 << 6)
    /// An order is taken in one step and its place in another.
    static let placeWithOrder = ModelOmissions(rawValue: 1 << 7)
    /// A copy is placed in another step than the look at its row.
    static let carryUnderLock = ModelOmissions(rawValue: 1 << 8)
    /// Several segments are reclaimed at a time.
    static let serialReclaim = ModelOmissions(rawValue: 1 << 9)
    /// Blob numbers start after the highest file that is there.
    static let blobNumbers = ModelOmissions(rawValue: 1 << 10)
    /// The blob of a put whose record could not be written is removed.
    static let uncertainBlob = ModelOmissions(rawValue: 1 << 11)
    /// A freshening begins while a put of its identity is in flight.
    static let freshenAlone = ModelOmissions(rawValue: 1 << 12)
    /// Purge-all empties memory before the new epoch is on the disk.
    static let epochFirst = ModelOmissions(rawValue: 1 << 13)
    /// The blob of a row that goes is unlinked although a freshening in flight names it.
    static let namedBlobs = ModelOmissions(rawValue: 1 << 14)
    /// A row for which recovery found two copies of one order does not shadow.
    static let copyShadows = ModelOmissions(rawValue: 1 << 15)
    /// The blob of an evicted entry goes before the segment that points to it.
    static let blobAfterSegment = ModelOmissions(rawValue: 1 << 16)
    /// A segment goes while the tombstone of a removal is not written.
    static let removalBeforeUnlink = ModelOmissions(rawValue: 1 << 17)
    /// The tombstone of a removal is not written again when that failed.
    static let postponedTombstones = ModelOmissions(rawValue: 1 << 18)
}
