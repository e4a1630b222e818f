// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Slots in arrays of one's own kind that grow by a sixteenth and give memory back, so that they take little more than their use.
struct CompactArray<Element: Sendable>: Sendable {
    private(set) var items: [Element] = []

    /// The bytes of memory taken.
    var bytes: Int { items.capacity * MemoryLayout<Element>.stride }
    /// The number of elements.
    var count: Int { items.count }

    /// The element at an index below ``count``.
    subscript(_ index: Int) -> Element {
        get { items[index] }
        _modify { yield &items[index] }
    }

    /// Adds an element at the end.
    mutating func append(_ element: Element) {
        if items.count == items.capacity { items.reserveCapacity(items.count + items.count / 16 + 16) }
        items.append(element)
    }

    /// Takes the last element away; nothing happens when there is none.
    mutating func removeLast() {
        guard !items.isEmpty else { return }
        items.removeLast()
        trim()
    }

    /// Exchanges two elements.
    mutating func swapAt(_ first: Int, _ second: Int) { items.swapAt(first, second) }

    /// Takes the first elements away.
    mutating func removeFirst(_ count: Int) {
        items.removeFirst(count)
        trim()
    }

    /// Keeps the elements that `isKept` names, asked in order.
    mutating func keep(where isKept: (Element) -> Bool) {
        items.removeAll { !isKept($0) }
        trim()
    }

    private mutating func trim() {
        guard items.capacity > 256, items.count < items.capacity / 4 * 3 else { return }
        var smaller: [Element] = []
        smaller.reserveCapacity(items.count + items.count / 16 + 16)
        smaller.append(contentsOf: items)
        items = smaller
    }
}
