// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides what a purge removes, in rounds if a caller's predicate must be asked outside of any lock.
///
/// Under the lock, the store asks ``unknown(in:_:now:)``. If nothing is unknown, it removes the entries under the same lock, so the
/// purge is atomic; otherwise it releases the lock, calls ``decide(_:)`` and tries again. The number of rounds is limited: what
/// still arrives after several of them was written after the purge began.
struct PurgeDecision: Sendable {
    /// Entries that only the predicate can decide about; those being written are under their writer's number.
    struct Unknown: Sendable {
        var committed: [StoredEntry] = []
        var written: [UInt64: StoredEntry] = [:]
        var isEmpty: Bool { committed.isEmpty && written.isEmpty }
    }

    private static let maximumRounds = 8

    private let selection: PurgeSelection
    private var committed: [StoredEntry.Version: Bool] = [:]
    private var written: [UInt64: Bool] = [:]
    private var rounds = 0

    init(_ selection: PurgeSelection) { self.selection = selection }

    /// Whether entries must be passed to ``unknown(in:_:now:)``.
    var asks: Bool {
        guard case .matching = selection.form else { return false }
        return rounds < Self.maximumRounds
    }

    /// Which of the entries must be decided first; empty for every form except a predicate.
    func unknown(in entries: [StoredEntry], _ writers: WritersInFlight, now: StoreInstant) -> Unknown {
        var unknown = Unknown()
        guard asks else { return unknown }
        unknown.committed = entries.filter { committed[$0.version] == nil }
        for writer in writers.all where written[writer.id] == nil {
            unknown.written[writer.id] = writer.entry(now: now)
        }
        return unknown
    }

    /// Asks the caller's predicate; never under a lock.
    mutating func decide(_ unknown: Unknown) {
        guard case .matching(let predicate) = selection.form else { return }
        rounds += 1
        for entry in unknown.committed { committed[entry.version] = predicate(entry) }
        for (id, entry) in unknown.written { written[id] = predicate(entry) }
    }

    /// Whether the purge removes a committed entry.
    func takes(_ entry: StoredEntry) -> Bool {
        selection.takes(entry.key, description: entry.description) ?? committed[entry.version] ?? false
    }

    /// The writers whose entries the purge removes.
    func superseded(in writers: WritersInFlight) -> Set<UInt64> {
        let superseded = writers.all.filter { writer in
            selection.takes(writer.key, description: writer.description) ?? written[writer.id] ?? false
        }
        return Set(superseded.map(\.id))
    }
}

extension EntryDescription {
    /// The description in the form that stores keep: tags within their limits, metadata in its own storage.
    ///
    /// If there are too many tags, the first 64 in byte order stay, so that every store keeps the same ones.
    var kept: EntryDescription {
        var tags = tags.filter { $0.utf8.count <= 1_024 }
        if tags.count > 64 { tags = Set(tags.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.prefix(64)) }
        return EntryDescription(metadata: metadata.compacted(), uselessAfter: uselessAfter, tags: tags)
    }

    /// Whether it has a tag with the same UTF-8 bytes; strings are equal if they only look the same.
    package func hasTag(_ tag: String) -> Bool {
        tags.firstIndex(of: tag).map { tags[$0].utf8.elementsEqual(tag.utf8) } ?? false
    }

    /// The bytes of the metadata and the tags.
    var byteCount: Int {
        tags.reduce(metadata.count) { $0 + $1.utf8.count }
    }
}

extension StoredEntry {
    /// The same entry with another description, version or pin.
    func changed(
        description: EntryDescription? = nil,
        version: Version? = nil,
        isPinned: Bool? = nil,
        held: ResidentBody? = nil
    ) -> StoredEntry {
        StoredEntry(
            Content(
                key: key,
                variant: variant,
                version: version ?? self.version,
                description: description ?? self.description,
                bodyLength: bodyLength,
                storedAt: storedAt,
                isPinned: isPinned ?? self.isPinned,
                // Only an origin's response clears it, and that comes as a new description.
                needsValidation: description == nil && needsValidation,
                held: held
            )
        )
    }
}

extension PurgeSelection {
    /// Whether the selection includes an entry with this key and description; nil if only its predicate can tell.
    func takes(_ key: StoreKey, description: EntryDescription) -> Bool? {
        switch form {
        case .all: true
        case .tag(let tag): description.hasTag(tag)
        case .keyPrefix(let prefix): key.hasPrefix(prefix)
        case .matching: nil
        }
    }
}
