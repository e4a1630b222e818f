// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Making room: what is of no use leaves first, then guests, then what the policy chooses.
extension MemoryLedger {
    /// Makes sure that `count` bytes more can be held.
    ///
    /// Nothing leaves in vain: without hope of enough room all entries stay.
    ///
    /// - Throws: `.noSpace` where pins and writers leave too little.
    mutating func makeRoom(_ count: Int, _ leaving: inout [Leaving]) throws(StoreError) {
        guard count > 0 else { return }
        guard count <= capacity - writers.reserved - pinnedBytes else {
            throw StoreError(.noSpace, "What is pinned or being written leaves no room; try again later.")
        }
        let target = target(inFlight: writers.reserved + count)
        while used > capacity - count || policy.used > target, let slot = useless.first(before: latestNow) {
            evict(Slot(truncatingIfNeeded: slot), &leaving)
        }
        setPolicyCapacity(target, &leaving)
        evictGuests(until: capacity - count, &leaving)
    }

    /// Begins to write an entry whose bytes so far there is room for.
    mutating func begin(_ writer: WritersInFlight.Writer) -> UInt64 {
        headroom.noteBegin(inFlight: writers.reserved)
        let id = writers.begin(writer)
        headroom.note(inFlight: writers.reserved)
        return id
    }

    /// Holds bytes for a writer, for which there is room.
    mutating func reserve(_ count: Int, for id: UInt64) {
        writers.reserve(count, for: id)
        headroom.note(inFlight: writers.reserved)
    }

    /// Evicts until at most `bytes` are held, as far as pins and writers allow.
    mutating func trim(to bytes: Int, _ leaving: inout [Leaving]) {
        while used > bytes, let slot = useless.first(before: latestNow) {
            evict(Slot(truncatingIfNeeded: slot), &leaving)
        }
        evictGuests(until: bytes, &leaving)
        if used > bytes {
            // In two steps, lest `bytes` is far below zero.
            let rest = max(0, bytes - (used - policy.used))
            setPolicyCapacity(min(rest, policy.used), &leaving)
        }
        fit(&leaving)
    }

    /// Gives the policy the capacity that is its own now.
    mutating func fit(_ leaving: inout [Leaving]) {
        setPolicyCapacity(target(inFlight: writers.reserved), &leaving)
        evictGuests(until: capacity, &leaving)
    }

    /// While the policy would have to let something go for `count` bytes more, what is of no use leaves.
    mutating func evictUseless(for count: Int, sparing spared: Slot, _ leaving: inout [Leaving]) {
        while count > policy.capacity - policy.used, let slot = useless.first(before: latestNow) {
            if slot == Int(spared) { return }
            evict(Slot(truncatingIfNeeded: slot), &leaving)
        }
    }

    private func target(inFlight bytes: Int) -> Int {
        max(0, capacity - pinnedBytes - max(bytes, headroom.bytes))
    }

    private mutating func setPolicyCapacity(_ bytes: Int, _ leaving: inout [Leaving]) {
        guard bytes != policy.capacity else { return }
        policy.setCapacity(bytes, victims: &victims)
        settle(offered: nil, &leaving)
    }

    private mutating func evictGuests(until bytes: Int, _ leaving: inout [Leaving]) {
        while used > bytes, let slot = guests.last { evict(slot, &leaving) }
    }
}
