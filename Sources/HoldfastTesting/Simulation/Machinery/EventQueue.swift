// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Things that will happen, taken out in the order of their times, then in the order in which they were put in.
///
/// A binary heap: putting in and taking out cost the logarithm of the count.
struct EventQueue<Payload> {
    private struct Item {
        let time: Duration
        let sequence: UInt64
        let payload: Payload

        func comes(before other: Item) -> Bool {
            (time, sequence) < (other.time, other.sequence)
        }
    }

    private var items: [Item] = []
    private var nextSequence: UInt64 = 0

    var isEmpty: Bool { items.isEmpty }

    /// When the next thing happens, and what it is; nil where nothing is left.
    var next: (time: Duration, payload: Payload)? {
        items.first.map { ($0.time, $0.payload) }
    }

    mutating func add(_ payload: Payload, at time: Duration) {
        items.append(Item(time: time, sequence: nextSequence, payload: payload))
        nextSequence += 1
        var child = items.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard items[child].comes(before: items[parent]) else { break }
            items.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeNext() -> (time: Duration, payload: Payload)? {
        guard let first = items.first else { return nil }
        let last = items.removeLast()
        if !items.isEmpty {
            items[0] = last
            sink()
        }
        return (first.time, first.payload)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
                if items[child].comes(before: items[least]) { least = child }
            }
            guard least != parent else { return }
            items.swapAt(parent, least)
            parent = least
        }
    }
}
