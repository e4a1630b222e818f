// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Slots ordered by the instant after which their content is useless: a binary heap, every step O(log n).
///
/// A slot whose instant changes is added again, and its older item is skipped when it comes up. The heap is rebuilt when such items
/// outnumber the rest.
struct ExpiryQueue: Sendable {
    private struct Item: Sendable {
        let instant: StoreInstant
        let slot: Int
    }

    private var heap: [Item] = []
    /// By slot; ``StoreInstant/distantFuture`` if a slot is not in the queue.
    private var instants: [StoreInstant] = []
    private var count = 0

    /// Adds `slot`, or changes its instant; `.distantFuture` removes it.
    mutating func set(_ slot: Int, instant: StoreInstant) {
        if instant == .distantFuture { return remove(slot) }
        while instants.count <= slot { instants.append(.distantFuture) }
        let old = instants[slot]
        if old == instant { return }
        if old == .distantFuture { count += 1 }
        instants[slot] = instant
        heap.append(Item(instant: instant, slot: slot))
        siftUp(heap.count - 1)
        if heap.count > 64 + 2 * count { rebuild() }
    }

    /// Removes `slot`.
    mutating func remove(_ slot: Int) {
        guard slot < instants.count, instants[slot] != .distantFuture else { return }
        instants[slot] = .distantFuture
        count -= 1
    }

    /// The slot whose instant is furthest before `now`, if there is one.
    mutating func first(before now: StoreInstant) -> Int? {
        while let item = heap.first, item.instant < now {
            if instants[item.slot] == item.instant { return item.slot }
            dropFirst()
        }
        return nil
    }

    private mutating func dropFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        siftDown(0)
    }

    private mutating func rebuild() {
        var kept: [Item] = []
        kept.reserveCapacity(2 * count)
        // Takes each slot once: one that left and returned with the same instant is in the heap twice.
        for item in heap where instants[item.slot] == item.instant {
            kept.append(item)
            instants[item.slot] = .distantFuture
        }
        for item in kept { instants[item.slot] = item.instant }
        heap = kept
        for index in heap.indices.reversed() where index < heap.count / 2 { siftDown(index) }
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0, heap[index].instant < heap[(index - 1) / 2].instant {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
                if heap[child].instant < heap[least].instant { least = child }
            }
            if least == index { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
