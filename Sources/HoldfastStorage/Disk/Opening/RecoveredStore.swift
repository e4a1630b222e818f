// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a directory turned out to hold; the rows of the index went to the shards while it was read.
struct RecoveredStore: Sendable {
    /// A segment that lives.
    struct Segment: Sendable {
        let number: UInt64
        let kind: LogKind
        /// Bytes of its file.
        let fileSize: Int
        /// The highest order in it, 0 without records.
        let highestOrder: UInt64
        /// Whether it ends with a table that holds its checks.
        let isSealed: Bool
        /// Where its table begins, or where it has none, where it belongs: behind the last record.
        let tail: Int
        /// Its records where it is not sealed, sorted, so that it can be; empty where it is.
        let rows: [TableRow]
        /// The blobs of ``rows``.
        let blobRows: [BlobRow]
        /// Whether something in it does not hold its checks: reclaim it early, since each opening finds that again.
        let isDamaged: Bool
        /// Bytes of the blob files that entries of it name.
        var blobBytes = 0
    }

    /// An entry that won over older ones and is void itself. It needs a tombstone of its order before any segment is
    /// reclaimed: an older one must not come back once its record is gone.
    struct Owed: Sendable, Hashable {
        let primary: UInt64
        let variant: UInt32
        let order: UInt64
    }

    /// A file in which nothing counts.
    struct VoidFile: Sendable, Hashable {
        let path: String
        let size: Int
    }

    /// How much did not hold.
    struct Damage: Sendable, Hashable {
        /// Segment files with damage in header, table or marks, or of which a part cannot be read.
        var segments = 0
        /// Entries whose blob is missing or of another size.
        var entries = 0
        /// Entries that the bodies of a damaged segment lost.
        var bodies = 0
    }

    /// By ascending number; a segment's slot is its position.
    var segments: [Segment] = []
    /// Entries installed.
    var entries = 0
    /// Bytes of the blob files that entries name, in whole blocks.
    var blobBlocks = 0
    var marks = PurgeMarks()
    var owed: [Owed] = []
    /// The files to remove once the format is written.
    var void: [VoidFile] = []
    var damage = Damage()
    /// The order that the next record gets.
    var nextOrder: UInt64 = 1
    /// Entries of a lower order must be revalidated before they are used.
    var suspectBefore: UInt64 = 0
    /// The number that the next segment gets.
    var nextSegment: UInt64 = 1
    /// Higher than the number of every blob file and of every blob that a whole record names, dead ones included.
    var nextBlob: UInt64 = 1
}
