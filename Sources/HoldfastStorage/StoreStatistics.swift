// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a store counted since it was opened, in look-ups and bytes only; hits of a cache are counted elsewhere.
public struct StoreStatistics: Sendable, Hashable {
    /// Look-ups, each of one primary key.
    public var lookups = 0
    /// Look-ups that found at least one entry.
    public var lookupsFound = 0
    /// Entries committed, freshenings left out.
    public var entriesWritten = 0
    /// Entries that left because space was needed.
    public var entriesEvicted = 0
    /// Entries removed, invalidated or purged by the caller.
    public var entriesRemoved = 0
    /// Entries dropped because a check failed.
    public var entriesCorrupt = 0
    /// Pinned entries that were released when the store was opened, since a smaller capacity has no room for them.
    public var pinsReleased = 0
    /// Operations that the device refused.
    public var failures = 0
    /// Body bytes handed to readers.
    public var bytesRead = 0
    /// Body bytes of committed entries.
    public var bytesWritten = 0
    /// Entries held now.
    public var entryCount = 0
    /// Bytes held now, as the store counts them against its capacity.
    public var bytesUsed = 0
    /// The bound on ``bytesUsed``.
    public var capacity = 0

    /// All zero.
    public init() {}
}
