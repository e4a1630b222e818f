// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// Under which principal responses were stored last, so that a miss can say that it comes from the partition.
///
/// A hint and no more: URIs share a fixed number of slots, what is evicted or invalidated stays noted, and a restart forgets all.
/// Nothing is decided by it.
final class StoredElsewhere: Sendable {
    private static let slots = 4_096

    /// One digest of the URI and one of the partition in each slot, 32 bits of both; 0 where nothing was noted. Empty before the
    /// first note.
    private let noted = Mutex<[UInt64]>([])

    /// An entry was stored or freshened by a call.
    func note(_ entry: StoredEntry, _ lookup: CacheLookup) {
        let isOwn = lookup.sharedKey == nil || entry.key == lookup.storeKey
        let place = Place(lookup.key)
        let value = place.value(of: isOwn ? lookup.principal : "")
        noted.withLock { noted in
            if noted.isEmpty { noted = [UInt64](repeating: 0, count: StoredElsewhere.slots) }
            noted[place.slot] = value
        }
    }

    /// Whether the last response that is known to have been stored for the URI was another principal's.
    func isElsewhere(_ lookup: CacheLookup) -> Bool {
        let place = Place(lookup.key)
        let value = noted.withLock { $0.isEmpty ? 0 : $0[place.slot] }
        guard place.isOwn(value), value != place.value(of: lookup.principal) else { return false }
        // What is everyone's was looked up as well, and has gone; where it is only lent, it may be there and not be for lending.
        return lookup.sharedKey == nil || lookup.borrows || value != place.value(of: "")
    }

    /// Entries were removed, and whose they were is not known.
    func forgetAll() {
        noted.withLock { $0 = [] }
    }

    private struct Place {
        let slot: Int
        private let target: UInt64

        init(_ key: CacheKey) {
            var hasher = Hasher()
            hasher.combine(key.target)
            hasher.combine(key.methodGroup)
            hasher.combine(key.contentType)
            hasher.combine(key.contentDigest)
            let hash = UInt64(truncatingIfNeeded: hasher.finalize())
            slot = Int(hash % UInt64(StoredElsewhere.slots))
            // Never 0, which stands for nothing.
            target = hash >> 32 | 1
        }

        func value(of partition: String) -> UInt64 {
            target << 32 | UInt64(truncatingIfNeeded: partition.hashValue) & 0xFFFF_FFFF
        }

        func isOwn(_ value: UInt64) -> Bool { value >> 32 == target }
    }
}

extension HTTPCache {
    /// What to say of a miss for which nothing was found.
    func reasonForNothing(_ lookup: CacheLookup, _ candidates: [CacheCandidate]) -> CacheReason {
        candidates.isEmpty && storedElsewhere.isElsewhere(lookup) ? .otherPrincipal : .notStored
    }

    /// A request's fields as this cache sees them: without the cookies that it ignores.
    func view(of fields: HeaderFields) -> HeaderFields {
        options.ignored.view(of: fields)
    }
}
