// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Slots by the instant past which their content is of no use: a binary heap, every step O(log n).
///
/// A slot whose instant changes is entered again and its older item passed over when it comes up; the heap is rebuilt
/// when such leftovers outnumber the rest.
struct UselessQueue {
    private struct Item {
        let instant: StoreInstant
        let slot: Int
    }

    private var heap: [Item] = []
    private var instants: [Int: StoreInstant] = [:]

    /// Enters `slot`, or changes its instant; `.distantFuture` takes it out.
    mutating func set(_ slot: Int, _ instant: StoreInstant) {
        if instant == .distantFuture { return remove(slot) }
        if instants.updateValue(instant, forKey: slot) == instant { return }
        heap.append(Item(instant: instant, slot: slot))
        siftUp(heap.count - 1)
        if heap.count > 64 + 2 * instants.count { rebuild() }
    }

    /// Takes `slot` out.
    mutating func remove(_ slot: Int) {
        instants[slot] = nil
    }

    /// The slot whose instant lies furthest before `now`, if one does.
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
        heap = instants.map { Item(instant: $0.value, slot: $0.key) }
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
