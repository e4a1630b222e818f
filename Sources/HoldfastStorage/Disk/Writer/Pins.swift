// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Which entries are pinned, by identity, and what they weigh; few, since each is a person's wish.
final class PinBook: Sendable {
    private struct State {
        var weights: [EntryIdentity: Int]
        var sum: Int
    }

    private let capacity: Int
    private let state: Mutex<State>

    init(capacity: Int) {
        self.capacity = capacity
        state = Mutex(State(weights: [:], sum: 0))
    }

    /// What all pinned entries weigh.
    var sum: Int { state.withLock { $0.sum } }

    /// Pins an entry of this weight, or gives it this weight; false when there is no room for it.
    func pin(_ identity: EntryIdentity, weight: Int) -> Bool {
        state.withLock { state in
            let others = state.sum - (state.weights[identity] ?? 0)
            guard weight <= capacity - others else { return false }
            state.weights[identity] = weight
            state.sum = others + weight
            return true
        }
    }

    /// Releases an entry.
    func release(_ identity: EntryIdentity) {
        state.withLock { state in
            state.sum -= state.weights.removeValue(forKey: identity) ?? 0
        }
    }

    /// Releases every entry.
    func releaseAll() {
        state.withLock { $0 = State(weights: [:], sum: 0) }
    }
}

/// What names an entry in the index: the hashes of its primary key and of its variant.
struct EntryIdentity: Sendable, Hashable {
    let primary: UInt64
    let variant: UInt32
}

/// Pins and the bound on the variants of a key: what is settled once an entry is in the index.
extension DiskEngine {
    /// The most variants of one key; one more takes the place of the oldest that is not pinned.
    static let maximumVariants = 16

    /// What a pinned entry weighs against what pins may have.
    func pinWeight(_ header: RecordHeader) -> Int {
        header.units * 16 + TableRow.size + BlobRow.size
            + (header.hasBlob ? SpaceLedger.blocks(header.storedBlobBytes) : 0)
    }

    /// Books the pin of an entry that has come into the index; where there is no room for it the entry is not pinned.
    func settlePin(_ record: ReservedRecord, _ replaced: GoneRow?) {
        let identity = EntryIdentity(primary: record.header.primary, variant: record.header.variant)
        if record.header.isPinned {
            if !pins.pin(identity, weight: pinWeight(record.header)) { unpin(identity) }
        } else if replaced?.row.isPinned == true {
            pins.release(identity)
        }
    }

    func unpin(_ identity: EntryIdentity) {
        pins.release(identity)
        index.shard(of: identity.primary).state.withLock { shard in
            _ = shard.table.change(ShardedIndex.fragment(of: identity.primary), variant: identity.variant) {
                $0.isPinned = false
            }
        }
    }
}
