// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension EntryDescription {
    /// The description as stores keep it: tags within their bounds, metadata in storage of its own.
    ///
    /// Of too many tags the first 64 in byte order stay, so that every store keeps the same ones.
    var kept: EntryDescription {
        var tags = tags.filter { $0.utf8.count <= 1_024 }
        if tags.count > 64 { tags = Set(tags.sorted().prefix(64)) }
        return EntryDescription(metadata: metadata.compacted(), uselessAfter: uselessAfter, tags: tags)
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
        held: HeldBody? = nil
    ) -> StoredEntry {
        StoredEntry(
            key: key,
            variant: variant,
            version: version ?? self.version,
            description: description ?? self.description,
            bodyLength: bodyLength,
            storedAt: storedAt,
            isPinned: isPinned ?? self.isPinned,
            // Only an origin's answer lifts it, and that comes as a new description.
            needsValidation: description == nil && needsValidation,
            held: held
        )
    }
}

extension PurgeSelection {
    /// Whether the selection takes an entry with this key and description; nil where only its predicate can tell.
    func takes(_ key: StoreKey, _ description: EntryDescription) -> Bool? {
        switch form {
        case .all: true
        case .tag(let tag): description.tags.contains(tag)
        case .keyPrefix(let prefix): key.hasPrefix(prefix)
        case .matching: nil
        }
    }
}
