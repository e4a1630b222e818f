// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// An entry of the lower tier as the upper tier holds it: its snapshot and its place in its group precede its metadata.
///
/// A group is all variants of a primary key at one instant, under one number. The upper tier may evict a single variant; the
/// remaining ones then do not answer a lookup.
struct PromotedEntry: Sendable {
    private static let mark: UInt8 = 0xA7
    private static let headLength = 45

    /// The entry as the lower tier shows it.
    let entry: StoredEntry
    /// The number of the promotion that copied the group.
    let group: UInt64
    /// The generation of the upper tier; entries of an earlier one may be out of date.
    let generation: UInt64
    /// The place in the group, the newest variant first.
    let index: Int
    /// The number of variants in the group.
    let count: Int
    /// Whether the upper tier has the body too.
    let hasBody: Bool

    /// The description under which the upper tier keeps it: purges by tag match it as they match the entry itself.
    var description: EntryDescription {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(PromotedEntry.headLength + entry.description.metadata.count)
        let flags: UInt8 = (hasBody ? 1 : 0) | (entry.isPinned ? 2 : 0) | (entry.needsValidation ? 4 : 0)
        bytes += [PromotedEntry.mark, flags, UInt8(truncatingIfNeeded: index), UInt8(truncatingIfNeeded: count), 0]
        PromotedEntry.append(entry.version.number, to: &bytes)
        PromotedEntry.append(UInt64(bitPattern: entry.storedAt.milliseconds), to: &bytes)
        PromotedEntry.append(UInt64(clamping: entry.bodyLength), to: &bytes)
        PromotedEntry.append(group, to: &bytes)
        PromotedEntry.append(generation, to: &bytes)
        entry.description.metadata.append(to: &bytes)
        return EntryDescription(
            metadata: ByteChunk(bytes),
            uselessAfter: entry.description.uselessAfter,
            tags: entry.description.tags
        )
    }

    init(_ entry: StoredEntry, group: UInt64, generation: UInt64, index: Int, count: Int, hasBody: Bool) {
        self.entry = entry
        self.group = group
        self.generation = generation
        self.index = index
        self.count = count
        self.hasBody = hasBody
    }

    /// The entry that an entry of the upper tier stands for; nil if no promotion wrote it. The metadata is not copied.
    init?(_ upper: StoredEntry) {
        let bytes = upper.description.metadata
        guard bytes.count >= PromotedEntry.headLength, bytes[0] == PromotedEntry.mark,
            let bodyLength = Int(exactly: PromotedEntry.number(in: bytes, at: 21)), bytes[3] > 0, bytes[2] < bytes[3]
        else { return nil }
        let storedAt = Int64(bitPattern: PromotedEntry.number(in: bytes, at: 13))
        entry = StoredEntry(
            key: upper.key,
            variant: upper.variant,
            version: StoredEntry.Version(number: PromotedEntry.number(in: bytes, at: 5)),
            description: EntryDescription(
                metadata: bytes[PromotedEntry.headLength..<bytes.count],
                uselessAfter: upper.description.uselessAfter,
                tags: upper.description.tags
            ),
            bodyLength: bodyLength,
            storedAt: StoreInstant(milliseconds: storedAt),
            isPinned: bytes[1] & 2 != 0,
            needsValidation: bytes[1] & 4 != 0
        )
        hasBody = bytes[1] & 1 != 0
        index = Int(bytes[2])
        count = Int(bytes[3])
        group = PromotedEntry.number(in: bytes, at: 29)
        generation = PromotedEntry.number(in: bytes, at: 37)
    }

    /// The whole group that `upper` shows, the newest variant first; nil if a variant is missing.
    static func group(_ upper: [StoredEntry], generation: UInt64) -> [PromotedEntry]? {
        if upper.count == 1 {
            guard let only = PromotedEntry(upper[0]), only.count == 1, only.generation == generation else { return nil }
            return [only]
        }
        let all = upper.compactMap { PromotedEntry($0) }.filter { $0.generation == generation }
        guard let latest = all.map(\.group).max() else { return nil }
        let group = all.filter { $0.group == latest }.sorted { $0.index < $1.index }
        guard let count = group.first?.count, group.count == count else { return nil }
        return group
    }

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    private static func number(in bytes: ByteChunk, at offset: Int) -> UInt64 {
        bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
    }
}
