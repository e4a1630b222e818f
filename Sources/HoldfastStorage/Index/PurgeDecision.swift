// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Decides what a purge removes, in rounds if a caller's predicate must be asked outside of any lock.
///
/// Under the lock, the store asks ``unknown(in:_:now:)``. If nothing is unknown, it removes the entries under the same lock, so the
/// purge is atomic; otherwise it releases the lock, calls ``decide(_:)`` and tries again. The number of rounds is limited: what
/// still arrives after several of them was written after the purge began.
struct PurgeDecision: Sendable {
    /// What is decided about: an entry, or one that is being written, by its writer's number.
    enum Subject: Sendable, Hashable {
        case committed(StoredEntry.Version)
        case written(UInt64)
    }

    /// What only the predicate can decide about.
    typealias Unknown = (subject: Subject, entry: StoredEntry)

    private static let maximumRounds = 8

    private let selection: PurgeSelection
    private var decisions: [Subject: Bool] = [:]
    private var rounds = 0

    init(_ selection: PurgeSelection) { self.selection = selection }

    /// Whether entries must be passed to ``unknown(in:_:now:)``.
    var asks: Bool {
        guard case .matching = selection.form else { return false }
        return rounds < Self.maximumRounds
    }

    /// Which of the entries must be decided first; empty for every form except a predicate.
    func unknown(in entries: [StoredEntry], _ writers: WritersInFlight, now: StoreInstant) -> [Unknown] {
        guard asks else { return [] }
        var shown = entries.map { (subject: Subject.committed($0.version), entry: $0) }
        shown += writers.all.map { (subject: Subject.written($0.id), entry: $0.entry(now: now)) }
        return shown.filter { decisions[$0.subject] == nil }
    }

    /// Asks the caller's predicate; never under a lock.
    mutating func decide(_ unknown: [Unknown]) {
        guard case .matching(let predicate) = selection.form else { return }
        rounds += 1
        for (subject, entry) in unknown { decisions[subject] = predicate(entry) }
    }

    /// Whether the purge removes a committed entry.
    func takes(_ entry: StoredEntry) -> Bool {
        selection.takes(entry.key, description: entry.description) ?? decisions[.committed(entry.version)] ?? false
    }

    /// Whether the purge removes the entry that a writer writes.
    func takes(_ writer: WritersInFlight.Writer) -> Bool {
        selection.takes(writer.key, description: writer.description) ?? decisions[.written(writer.id)] ?? false
    }
}

extension EntryDescription {
    /// The description in the form that stores keep: tags within their limits, metadata in its own storage.
    var kept: EntryDescription {
        EntryDescription(metadata: metadata.compacted(), uselessAfter: uselessAfter, tags: Self.kept(tags))
    }

    /// The tags within their limits: of too many, the first 64 in byte order, so that every store keeps the same ones.
    package static func kept(_ tags: Set<String>) -> Set<String> {
        let short = tags.filter { $0.utf8.count <= 1_024 }
        if short.count <= 64 { return short }
        return Set(short.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.prefix(64))
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
        var parts = content.parts
        if let version { parts.version = version }
        if let isPinned { parts.isPinned = isPinned }
        if let description {
            parts.description = description
            // Only an origin's response clears it, and that comes as a new description.
            parts.needsValidation = false
        }
        return StoredEntry(Content(parts, held: held))
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
