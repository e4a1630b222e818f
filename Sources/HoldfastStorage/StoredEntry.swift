// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a caller says about an entry when it writes or freshens it.
public struct EntryDescription: Sendable, Hashable {
    /// Bytes that describe the entry; the store protects them with a checksum and never reads them.
    public var metadata: ByteChunk
    /// After this instant the entry cannot even be served stale or revalidated, so it should be evicted first when space is needed.
    public var uselessAfter: StoreInstant
    /// Words for purging entries together; at most 64 of at most 1,024 UTF-8 bytes each are kept. A purge compares their bytes:
    /// what only looks the same, such as a letter with an accent of its own, is another tag. Of those that a `Set` takes for equal,
    /// it has one.
    public var tags: Set<String>
    /// When the caller asked for what it writes, by the same clock as the `now` of the write: this entry must not bring back what
    /// other processes have invalidated since. Not part of the entry. Nil: not known.
    package var requestedAt: StoreInstant?

    /// A description; by default the entry never becomes useless and has no tags.
    public init(metadata: ByteChunk, uselessAfter: StoreInstant = .distantFuture, tags: Set<String> = []) {
        self.metadata = metadata
        self.uselessAfter = uselessAfter
        self.tags = tags
    }

    public static func == (left: EntryDescription, right: EntryDescription) -> Bool {
        left.metadata == right.metadata && left.uselessAfter == right.uselessAfter && left.tags == right.tags
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(metadata)
        hasher.combine(uselessAfter)
        hasher.combine(tags)
    }
}

/// One stored entry as a lookup shows it: everything except the body's bytes.
///
/// This is a snapshot: the store may evict or replace the entry afterward. Operations with this snapshot then do nothing
/// (``CacheStore/replaceDescription(of:with:now:)`` returns nil), or continue to read the bytes it had.
public struct StoredEntry: Sendable, Hashable {
    /// The version of an entry; unique within a store for as long as the store exists.
    public struct Version: Sendable, Hashable, Comparable {
        /// The number; a later write or freshening of the same entry has a higher one.
        public let number: UInt64

        /// The version of an entry that is still being written, where a purge shows it.
        public static let beingWritten = Version(number: .max)

        /// The version with this number; only stores make versions.
        public init(number: UInt64) { self.number = number }

        public static func < (left: Version, right: Version) -> Bool { left.number < right.number }
    }

    /// The value of an entry.
    struct Parts: Sendable {
        let key: StoreKey
        let variant: StoreKey
        var version: Version
        var description: EntryDescription
        let bodyLength: Int
        let storedAt: StoreInstant
        var isPinned: Bool
        var needsValidation: Bool
    }

    /// The parts of an entry, behind one reference, so that entries are cheap to pass on. If a disk store read the entry together
    /// with its body, this includes the body.
    final class Content: Sendable {
        let parts: Parts
        let source: RecordSource?
        let held: ResidentBody?

        init(_ parts: Parts, held: ResidentBody?) {
            (self.parts, self.held) = (parts, held)
            source = nil
        }

        /// The entry that a record holds, with its detail.
        init(_ source: consuming RecordSource, detail: consuming RecordDetail, needsValidation: Bool) {
            parts = Parts(
                key: detail.key,
                variant: detail.variant,
                version: Version(number: source.header.version),
                description: EntryDescription(
                    metadata: detail.metadata,
                    uselessAfter: source.header.uselessAfter,
                    tags: detail.tags
                ),
                bodyLength: source.header.bodyLength,
                storedAt: source.header.storedAt,
                isPinned: source.row.isPinned,
                needsValidation: needsValidation
            )
            self.source = source
            held = nil
        }

        /// Whether the record's unencrypted body is what was written; nil if the record has no such body.
        var holdsBody: Bool? {
            guard let header = source?.header, !header.hasBlob, header.keyID == 0 else { return nil }
            return source?.bytes.withUnsafeBytes { bytes in
                let start = RecordHeader.size + header.detailLength
                return header.sum(of: bytes.part(start..<(start + header.inlineLength))) == header.bodyWord
            }
        }
    }

    let content: Content

    init(_ content: Content) { self.content = content }

    /// The primary key.
    public var key: StoreKey { content.parts.key }
    /// The variant's key under the primary key.
    public var variant: StoreKey { content.parts.variant }
    /// The version that this snapshot shows.
    public var version: Version { content.parts.version }
    /// What the writer said about it.
    public var description: EntryDescription { content.parts.description }
    /// The body's length in bytes.
    public var bodyLength: Int { content.parts.bodyLength }
    /// When the entry was committed.
    public var storedAt: StoreInstant { content.parts.storedAt }
    /// Whether the entry is pinned against eviction.
    public var isPinned: Bool { content.parts.isPinned }
    /// Whether the entry must be validated before any use, even a stale one: after a power loss, the store cannot be sure that no
    /// newer invalidation of it was lost. A freshening or a new write clears this.
    public var needsValidation: Bool { content.parts.needsValidation }
    /// The record that a disk store read the entry from; not part of the entry's value.
    var source: RecordSource? { content.source }
    /// What a memory store holds of the body; not part of the entry's value.
    var held: ResidentBody? { content.held }

    /// A snapshot with these parts; only stores make entries.
    public init(
        key: StoreKey,
        variant: StoreKey,
        version: Version,
        description: EntryDescription,
        bodyLength: Int,
        storedAt: StoreInstant,
        isPinned: Bool = false,
        needsValidation: Bool = false
    ) {
        let parts = Parts(
            key: key,
            variant: variant,
            version: version,
            description: description,
            bodyLength: bodyLength,
            storedAt: storedAt,
            isPinned: isPinned,
            needsValidation: needsValidation
        )
        content = Content(parts, held: nil)
    }

    public static func == (left: StoredEntry, right: StoredEntry) -> Bool {
        left.version == right.version && left.key == right.key && left.variant == right.variant
            && left.bodyLength == right.bodyLength && left.storedAt == right.storedAt
            && left.isPinned == right.isPinned && left.needsValidation == right.needsValidation
            && left.description == right.description
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(version)
        hasher.combine(key)
        hasher.combine(variant)
    }
}

/// A readable body: of a committed entry, or of one that is still being written.
///
/// Reads are by position, so each of several readers goes at its own pace. An open body keeps its bytes alive, whatever the store
/// does with the entry meanwhile.
public protocol StoredBody: Sendable {
    /// The length in bytes; nil while the body is still being written.
    var length: Int? { get }

    /// The whole body if it is in memory, so that a hit need not suspend; otherwise nil.
    var bytesInMemory: ByteChunk? { get }

    /// Reads up to `count` bytes from `offset`; an empty chunk means the end.
    ///
    /// While the body is being written, a read at its current end waits for more bytes or the end. Cancelling the task ends the
    /// wait with `.cancelled`.
    ///
    /// - Throws: ``StoreError``: `.corrupt` if a checksum fails (no byte of the failed part is returned), `.abandoned` if the
    ///   writer gave up, `.io`, `.cancelled`.
    func read(from offset: Int, upTo count: Int) async throws(StoreError) -> ByteChunk
}

/// Writes one entry: append the body, then commit or abandon; releasing the last reference to a writer abandons it.
///
/// One task uses a writer at a time. Until ``commit(_:now:)`` returns, no lookup shows the entry.
public protocol EntryWriter: AnyObject, Sendable {
    /// Appends bytes to the body.
    ///
    /// - Throws: `.tooLarge` if the entry could never fit (the writer is then abandoned), `.noSpace`, `.io`, `.closed`.
    func append(_ bytes: ByteChunk) async throws(StoreError)

    /// Makes the entry visible and replaces any older version of the same variant, atomically.
    ///
    /// - Parameters:
    ///   - description: replaces the description given at the start; nil keeps it.
    ///   - now: when it is committed.
    /// - Throws: `.superseded` if the primary key was invalidated or purged since the writer was made: the bytes may be older than
    ///   that invalidation, so they must not appear. Other codes as in ``append(_:)``.
    @discardableResult
    func commit(_ description: EntryDescription?, now: StoreInstant) async throws(StoreError) -> StoredEntry

    /// Gives the entry up: nothing of it remains, and it no longer counts. Synchronous, idempotent, never fails.
    func abandon()

    /// The body as it is being written, for readers that follow it.
    func follow() -> any StoredBody
}
