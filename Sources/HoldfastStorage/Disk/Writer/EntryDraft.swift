// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// An entry about to be written: everything in a record except what is decided when its place is reserved.
struct EntryDraft: Sendable {
    /// Where the body is.
    enum Body: Sendable {
        /// In the record, in plain form here.
        case inline(ByteChunk)
        /// In a blob file.
        case blob(BlobShape)
    }

    let key: StoreKey
    let variant: StoreKey
    let identity: EntryIdentity
    var description: EntryDescription
    var body: Body
    var storedAt: StoreInstant
    /// The version that it keeps; nil: its order becomes its version.
    var version: UInt64?
    /// Whether it is pinned; nil: like the entry that it replaces.
    var isPinned: Bool?
    /// The tags of the entry that it replaces: a mark of one of them applies to it too.
    var tagsBefore: Set<String> = []

    /// The bytes of key, variant and description, as they count toward the size of an entry.
    var overhead: Int { RecordHeader.size + key.bytes.count + variant.bytes.count + description.byteCount }

    /// The length of the plain body.
    var bodyLength: Int {
        switch body {
        case .inline(let bytes): bytes.count
        case .blob(let shape): shape.length
        }
    }

    /// The body's blob; nil for an inline body.
    var blob: BlobShape? {
        if case .blob(let shape) = body { shape } else { nil }
    }
}

/// An entry's record being built: room for the header, the detail in plain form, and a short body directly after it.
struct RecordBytes: Sendable {
    /// Bodies up to this length are copied after the detail, since writing one buffer is faster than writing two.
    static let shortBody = 4_096

    var bytes: [UInt8]
    let detailLength: Int
    /// The inline body in plain form.
    let body: ByteChunk

    init(_ draft: EntryDraft, isSealed: Bool) {
        let detail = RecordDetail(
            key: draft.key,
            variant: draft.variant,
            tags: draft.description.tags,
            metadata: draft.description.metadata
        )
        body = if case .inline(let bytes) = draft.body { bytes } else { ByteChunk() }
        let follows = !isSealed && body.count <= Self.shortBody ? body : ByteChunk()
        bytes = detail.encode(after: RecordHeader.size, before: follows)
        detailLength = bytes.count - RecordHeader.size - follows.count
    }

    /// Whether the body is after the detail.
    var holdsBody: Bool { bytes.count > RecordHeader.size + detailLength }

    /// The detail.
    var detail: ByteChunk { ByteChunk(bytes)[RecordHeader.size..<(RecordHeader.size + detailLength)] }
}

/// A record with a reserved place, and the header to write there.
struct ReservedRecord: Sendable {
    let place: LogState.Reservation
    var header: RecordHeader

    /// Its place for the index.
    var indexPlace: RecordLocation {
        RecordLocation(
            slot: place.segment.slot,
            unit: place.unit,
            units: UInt16(truncatingIfNeeded: (place.length + 15) / Geometry.unit)
        )
    }

    /// Its row for the table of its segment.
    var tableRow: TableRow { TableRow(header, place: place.unit) }

    /// Its blob row, if its body is a blob.
    var blobRow: BlobRow? { header.hasBlob ? BlobRow(header, place: place.unit) : nil }
}

/// The result of reserving.
enum Reserved<Value: Sendable>: Sendable {
    case done(Value)
    /// The log has no room; nothing has changed.
    case needsRoom(LogState.Request)
    /// Something else is being written for this identity; nothing has changed.
    case busy
}

extension Writer {
    /// The result of publishing a record.
    struct Published: Sendable {
        /// Whether it is in the index, or was, before a newer one replaced it.
        var isIn = false
        /// Whether a newer one had come before it: then it must never be seen.
        var isOvertaken = false
        /// Whether it was written and must never be seen: its key was invalidated or purged, or its base is gone.
        var isRefused = false
        /// Whether it may still be found after a crash.
        var mayRemain = false
        /// Whether its row is pinned.
        var isPinned = false
        /// Its row, if its identity had none before.
        var added: IndexRow?
        /// The row that it replaced in the index.
        var replaced: RemovedRow?
        /// A variant in excess of the limit.
        var surplus: IndexRow?
    }

    /// Why an entry is written.
    enum Purpose: Sendable {
        /// A writer commits it.
        case commit(writer: UInt64, since: UInt64)
        /// It is put in one step, so it is known from the reservation of its place on.
        case put(since: UInt64)
        /// It replaces only the row of this order; no mark up to the order `since` had killed that row.
        case replace(order: UInt64, since: UInt64)

        /// The writer that commits it.
        var writer: UInt64? {
            if case .commit(let writer, _) = self { writer } else { nil }
        }

        /// The last order before it began: a later mark kills it.
        var since: UInt64 {
            switch self {
            case .commit(_, let since), .put(let since), .replace(_, let since): since
            }
        }

        /// Whether it is a new entry, which replaces any with its identity.
        var isNew: Bool {
            if case .replace = self { false } else { true }
        }
    }
}

/// A record of an identity between the reservation of its place and its publication.
///
/// A put may overtake another put: orders decide. A write that replaces one particular record (a freshening, a change of a pin)
/// must be alone, since its order says nothing about the body that it keeps.
struct PendingWrite: Sendable, Hashable {
    let fragment: UInt64
    let variant: UInt32
    let order: UInt64
    let isExclusive: Bool
    /// The writer that commits it; nil if it is put in one step, or replaces one particular record.
    let writer: UInt64?
    /// Whether a record of a higher order has been published since: then this one is permanently superseded.
    var isOvertaken = false
    /// Whether its key was invalidated since: then it must never be seen.
    var isSuperseded = false

    /// Whether it is put in one step.
    var isPut: Bool { writer == nil && !isExclusive }

    /// Whether it is of this identity.
    func isOf(_ fragment: UInt64, variant: UInt32) -> Bool {
        self.fragment == fragment && self.variant == variant
    }
}

extension Shard {
    /// Records that a pending write has ended.
    mutating func endPending(_ fragment: UInt64, variant: UInt32, order: UInt64) -> PendingWrite? {
        guard let place = pending.firstIndex(where: { $0.order == order && $0.isOf(fragment, variant: variant) }) else {
            return nil
        }
        return pending.remove(at: place)
    }

    /// Records that pending writes for an identity below `order` are superseded.
    mutating func overtake(_ fragment: UInt64, variant: UInt32, below order: UInt64) {
        for place in pending.indices
        where pending[place].isOf(fragment, variant: variant) && pending[place].order < order {
            pending[place].isOvertaken = true
        }
    }

    /// Ensures that nothing that is being put under a primary key becomes visible.
    mutating func supersedePuts(_ fragment: UInt64) {
        for place in pending.indices where pending[place].fragment == fragment && pending[place].isPut {
            pending[place].isSuperseded = true
        }
    }

    /// Whether a write is pending that replaces one particular record of an identity.
    func isReplacing(_ fragment: UInt64, variant: UInt32) -> Bool {
        pending.contains { $0.isOf(fragment, variant: variant) && $0.isExclusive }
    }

    /// Whether a record of the identity that its row does not mention may be, or get, on the disk.
    func mayHide(_ primary: UInt64, fragment: UInt64, variant: UInt32) -> Bool {
        uncertain.contains(primary) || removing.contains(primary)
            || pending.contains { $0.isOf(fragment, variant: variant) }
    }

    /// Records that the tombstone of a primary key is written, or has failed.
    mutating func endRemoving(_ primary: UInt64, failed: Bool) {
        if let place = removing.firstIndex(of: primary) { removing.remove(at: place) }
        if failed { uncertain.note(primary) }
    }
}

extension RowMatches {
    /// The rows in a list.
    var all: [IndexRow] {
        switch self {
        case .none: []
        case .one(let row): [row]
        case .many(let rows): rows
        }
    }
}

extension RowTable {
    /// The oldest variant that is not pinned, if a key has too many variants.
    func surplus(_ fragment: UInt64) -> IndexRow? {
        guard case .many(let rows) = rows(fragment), rows.count > Writer.maximumVariants else { return nil }
        return rows.filter { !$0.isPinned }.min { $0.order < $1.order }
    }
}

/// Decides whether a short write may be made on the caller's thread.
///
/// Such a write is a copy into the page cache and takes microseconds, less than waking a thread. If the system begins to slow
/// writers down, the next ones go to the store's own thread until it has caught up.
final class InlineWritePolicy: Sendable {
    /// Longer records always go to the store's thread.
    static let longest = 65_536
    private static let patience = Duration.milliseconds(20)
    private static let detour = 64

    private let detoursLeft = Atomic<Int>(0)
    private let turn = Atomic<UInt8>(0)

    /// Whether to time this write: one in sixteen, since reading the clock costs as much as a small copy.
    var times: Bool { turn.wrappingAdd(1, ordering: .relaxed).newValue & 15 == 0 }

    /// Whether a record of this length may be written on this thread now.
    func admits(_ length: Int) -> Bool {
        if length > Self.longest { return false }
        if detoursLeft.load(ordering: .relaxed) == 0 { return true }
        detoursLeft.subtract(1, ordering: .relaxed)
        return detoursLeft.load(ordering: .relaxed) < 0
    }

    /// Records how long a write on a caller's thread took.
    func took(_ duration: Duration) {
        if duration > Self.patience { detoursLeft.store(Self.detour, ordering: .relaxed) }
    }
}

/// Identifies an entry in the index: the hashes of its primary key and of its variant.
struct EntryIdentity: Sendable, Hashable {
    let primary: UInt64
    let variant: UInt32
}

extension EntryIdentity {
    init(_ row: TableRow) { self.init(primary: row.primary, variant: row.variant) }

    init(_ header: RecordHeader) { self.init(primary: header.primary, variant: header.variant) }
}
