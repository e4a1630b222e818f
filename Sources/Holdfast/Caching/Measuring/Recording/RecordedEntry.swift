// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage

/// What a recorder is told of the stored response that a request is for.
struct RecordedEntry: Sendable {
    let key: StoreKey
    let variant: StoreKey
    /// What tells this response from later ones of the same variant.
    let version: [UInt8]
    /// What a store charges, as far as it is known.
    let size: Int

    /// - Parameter bodyLength: 0 where it is not known yet.
    init(
        key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        bodyLength: Int,
        _ stored: StoredResponse,
        _ options: CacheOptions
    ) {
        self.key = key
        self.variant = variant
        version = RecordedEntry.version(of: stored, options)
        let tags = description.tags.reduce(0) { $0 + $1.utf8.count }
        let head = MemoryStore.overhead + key.bytes.count + variant.bytes.count + description.metadata.count + tags
        let (size, overflow) = head.addingReportingOverflow(max(0, bodyLength))
        self.size = overflow ? .max : size
    }

    /// The validator: what comes back with another one was a miss for a cache of any size.
    ///
    /// What has none cannot be confirmed and is fetched anew once it is stale: in each period as long as it is fresh it is another
    /// one, so that two requests further apart than that never look like a hit.
    private static func version(of stored: StoredResponse, _ options: CacheOptions) -> [UInt8] {
        if let validator = stored.head.fields[.eTag] ?? stored.head.fields[.lastModified] {
            return Array(validator.utf8)
        }
        let period = max(1, stored.freshnessLifetime(options).seconds)
        return Array("\(stored.date.secondsSinceEpoch / period)".utf8)
    }
}
