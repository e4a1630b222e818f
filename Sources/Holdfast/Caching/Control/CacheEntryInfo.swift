// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
package import HoldfastStorage

/// What a cache tells of one stored response, for choosing among them and for looking at them.
///
/// Times and ages are as of the moment at which the selection or the listing began.
public struct CacheEntryInfo: Sendable, Hashable {
    /// The target URI of the request that the response answered.
    public let target: TargetURI
    /// The method of that request: as a rule GET.
    public let method: RequestMethod
    /// The response's status.
    public let status: StatusCode
    /// The words the call gave it (``CallOptions/tags``).
    public let tags: Set<String>
    /// When it was stored.
    public let storedAt: Timestamp
    /// The length of its body in bytes; 0 while it is still being stored.
    public let bodyLength: Int
    /// The length of its status, fields and the cache's own notes as stored, in bytes.
    public let headLength: Int
    /// The bytes that it takes of the store's capacity, its keys and the store's own notes included; nil where a selection is
    /// asked, for the store tells it to a listing alone.
    public let storedBytes: Int?
    /// How often it was found since it was written, as far as the store counts (a disk store estimates it, of late, to 14); nil where the
    /// store does not, and where a selection is asked.
    public let hits: Int?
    /// Which bytes of its content are there; nil: all of them (RFC 9111 §3.3).
    public let storedRanges: StoredRanges?
    /// Its age in seconds (RFC 9111 §4.2.3); since its receipt where the cache's options fix lifetimes.
    public let age: Int64
    /// How many seconds it stays fresh; 0 or less once it is stale, by as many seconds (RFC 9111 §4.2).
    public let freshnessLeft: Int64
    /// Whether it is one principal's own, and nobody else is answered from it.
    public let isPersonal: Bool
    /// Whether it is pinned against eviction.
    public let isPinned: Bool
    /// Whether the origin must confirm it before it is used again: it was removed softly, or its store lost power.
    public let needsConfirmation: Bool
    /// Where the store has it.
    package let key: StoreKey
    package let variant: StoreKey
    private let fields: NominatedFields

    /// Whether it answers requests without the origin: within its lifetime, and in no need of confirmation.
    public var isFresh: Bool { freshnessLeft > 0 && !needsConfirmation }

    /// What its Vary nominates, with the values of the request that it answered, sorted by name (RFC 9111 §4.1); empty where it
    /// does not vary.
    public var nominated: [NominatedField] { NominatedField.all(of: fields) }

    init(
        _ entry: StoredEntry,
        _ stored: StoredResponse,
        _ options: CacheOptions,
        hits: Int? = nil,
        storedBytes: Int? = nil,
        now: Timestamp
    ) {
        target = stored.target
        method = stored.method
        status = stored.head.status
        tags = entry.description.tags
        storedAt = Timestamp(millisecondsSinceEpoch: entry.storedAt.milliseconds)
        bodyLength = entry.bodyLength
        headLength = entry.description.metadata.count
        let standing = stored.standing(now: now, options: options)
        (age, freshnessLeft) = (standing.age, standing.freshnessLeft)
        isPersonal = CacheKey.Parts(framed: entry.key.bytes).map { !$0.partition.isEmpty } ?? false
        isPinned = entry.isPinned
        needsConfirmation = stored.needsConfirmation || entry.needsValidation
        storedRanges = stored.ranges
        self.hits = hits
        self.storedBytes = storedBytes
        key = entry.key
        variant = entry.variant
        fields = stored.nominated
    }
}
