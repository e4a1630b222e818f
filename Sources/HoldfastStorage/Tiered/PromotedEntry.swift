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
        let flags: UInt8 = (hasBody ? 1 : 0) | (entry.isPinned ? 2 : 0) | (entry.needsValidation ? 4 : 0)
        let metadata = entry.description.metadata
        let bytes = [UInt8](zeroed: PromotedEntry.headLength + metadata.count) { bytes in
            bytes.put(PromotedEntry.mark, at: 0)
            bytes.put(flags, at: 1)
            bytes.put(UInt8(truncatingIfNeeded: index), at: 2)
            bytes.put(UInt8(truncatingIfNeeded: count), at: 3)
            bytes.put(entry.version.number, at: 5)
            bytes.put(entry.storedAt.milliseconds, at: 13)
            bytes.put(UInt64(clamping: entry.bodyLength), at: 21)
            bytes.put(group, at: 29)
            bytes.put(generation, at: 37)
            metadata.withUnsafeBytes { bytes.put($0, at: PromotedEntry.headLength) }
        }
        return EntryDescription(
            metadata: ByteChunk(bytes),
            uselessAfter: entry.description.uselessAfter,
            tags: entry.description.tags
        )
    }
}

extension PromotedEntry {
    /// The entry that an entry of the upper tier stands for; nil if no promotion wrote it. The metadata is not copied.
    init?(_ upper: StoredEntry) {
        let metadata = upper.description.metadata
        guard metadata.count >= PromotedEntry.headLength, metadata[0] == PromotedEntry.mark else { return nil }
        func number(at offset: Int) -> UInt64 { metadata.withUnsafeBytes { $0.number(at: offset) } }
        guard let bodyLength = Int(exactly: number(at: 21)), metadata[3] > 0, metadata[2] < metadata[3] else {
            return nil
        }
        entry = StoredEntry(
            key: upper.key,
            variant: upper.variant,
            version: StoredEntry.Version(number: number(at: 5)),
            description: EntryDescription(
                metadata: metadata[PromotedEntry.headLength..<metadata.count],
                uselessAfter: upper.description.uselessAfter,
                tags: upper.description.tags
            ),
            bodyLength: bodyLength,
            storedAt: StoreInstant(milliseconds: Int64(bitPattern: number(at: 13))),
            isPinned: metadata[1] & 2 != 0,
            needsValidation: metadata[1] & 4 != 0
        )
        hasBody = metadata[1] & 1 != 0
        index = Int(metadata[2])
        count = Int(metadata[3])
        group = number(at: 29)
        generation = number(at: 37)
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
}
