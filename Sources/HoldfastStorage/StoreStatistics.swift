// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a store has counted since it was opened: only lookups and bytes. Hits of a cache are counted elsewhere.
public struct StoreStatistics: Sendable, Hashable {
    /// Lookups, each of one primary key.
    public var lookups = 0
    /// Lookups that found at least one entry.
    public var lookupsFound = 0
    /// Entries committed, without freshenings.
    public var entriesWritten = 0
    /// Entries evicted because space was needed.
    public var entriesEvicted = 0
    /// Entries that the caller removed, invalidated or purged. On disk, what a purge by tag or key prefix marks does not count
    /// here.
    public var entriesRemoved = 0
    /// Entries dropped because a check failed.
    public var entriesCorrupt = 0
    /// Pinned entries that were unpinned when the store was opened, because a smaller capacity has no room for them. Those that are
    /// still stored at the next opening count again: with a larger capacity they would be pinned.
    public var pinsReleased = 0
    /// Operations that the device refused.
    public var failures = 0
    /// Body bytes returned to readers.
    public var bytesRead = 0
    /// Body bytes of committed entries.
    public var bytesWritten = 0
    /// Entries held now. On disk, those that a purge by tag or key prefix has marked count until they are reclaimed.
    public var entryCount = 0
    /// Bytes held now, as counted against the capacity.
    public var bytesUsed = 0
    /// The limit on ``bytesUsed``.
    public var capacity = 0

    /// All zero.
    public init() {}
}
