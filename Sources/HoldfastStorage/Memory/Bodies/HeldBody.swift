// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The body of a version that lies in a ``MemoryStore``, and whether the version still does.
///
/// Snapshots of the version carry it, so that opening the body takes no lock and no second search.
final class HeldBody: Sendable {
    let bytes: ByteChunk
    /// What ``MemoryLedger`` knows the version by.
    let ticket: SlotTicket
    private let owner: ObjectIdentifier
    /// What it is a copy of, whose fate it shares.
    private let original: HeldBody?
    private let gone = Atomic(false)
    private let siblings = Atomic(false)

    /// The body of a version that lies in the shards named.
    init(_ bytes: ByteChunk, ticket: SlotTicket, in owner: AnyObject) {
        (self.bytes, self.ticket) = (bytes, ticket)
        self.owner = ObjectIdentifier(owner)
        original = nil
    }

    /// Another object for the same body, so that threads count references to objects of their own.
    init(copying other: HeldBody) {
        (bytes, ticket, owner, original) = (other.bytes, other.ticket, other.owner, other)
    }

    /// Whether the version left its store; set before the call returns that took it out.
    var isGone: Bool { (original ?? self).gone.load(ordering: .acquiring) }

    /// Whether the version stands beside others of its key, so that a look-up does not tell which of them is used.
    var hasSiblings: Bool { (original ?? self).siblings.load(ordering: .relaxed) }

    func isIn(_ owner: AnyObject) -> Bool { self.owner == ObjectIdentifier(owner) }

    func setGone() { gone.store(true, ordering: .releasing) }

    func setSiblings(_ hasSiblings: Bool) {
        if self.hasSiblings != hasSiblings { siblings.store(hasSiblings, ordering: .relaxed) }
    }
}
