// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Slots in arrays of one's own kind that grow by a sixteenth and give memory back, so that they take little more than their use.
package struct CompactArray<Element: Sendable>: Sendable {
    @usableFromInline package internal(set) var items: [Element] = []

    /// No elements.
    @inlinable package init() {}

    /// The bytes of memory taken.
    @inlinable package var bytes: Int { items.capacity * MemoryLayout<Element>.stride }
    /// The number of elements.
    @inlinable package var count: Int { items.count }

    /// The element at an index below ``count``.
    @inlinable package subscript(_ index: Int) -> Element {
        get { items[index] }
        _modify { yield &items[index] }
    }

    /// Adds an element at the end.
    @inlinable package mutating func append(_ element: Element) {
        if items.count == items.capacity { items.reserveCapacity(items.count + items.count / 16 + 16) }
        items.append(element)
    }

    /// Takes the last element away; nothing happens when there is none.
    @inlinable package mutating func removeLast() {
        guard !items.isEmpty else { return }
        items.removeLast()
        trim()
    }

    /// Exchanges two elements.
    @inlinable package mutating func swapAt(_ first: Int, _ second: Int) { items.swapAt(first, second) }

    /// Takes the first elements away.
    @inlinable package mutating func removeFirst(_ count: Int) {
        items.removeFirst(count)
        trim()
    }

    /// Keeps the elements that `isKept` names, asked in order.
    @inlinable package mutating func keep(where isKept: (Element) -> Bool) {
        items.removeAll { !isKept($0) }
        trim()
    }

    @inlinable mutating func trim() {
        guard items.capacity > 256, items.count < items.capacity / 4 * 3 else { return }
        var smaller: [Element] = []
        smaller.reserveCapacity(items.count + items.count / 16 + 16)
        smaller.append(contentsOf: items)
        items = smaller
    }
}
