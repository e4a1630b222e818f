// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A list of slots, linked by index with 8 bytes for each slot; every step is O(1).
///
/// Several lists of one policy share their links through ``SlotLinks``, because a slot is in only one of them at a time.
package struct SlotList: Sendable {
    private var links = SlotLinks()
    private var ends = SlotLinks.Ends()

    /// An empty list.
    package init() {}

    /// The bytes of memory used.
    package var bytes: Int { links.bytes }
    /// The slot that was prepended last.
    package var first: UInt32? { ends.first }
    /// The slot at the other end.
    package var last: UInt32? { ends.last }

    /// Prepends a slot; it must not be in the list.
    package mutating func prepend(_ slot: UInt32) { links.prepend(slot, to: &ends) }

    /// Removes a slot; it must be in the list.
    package mutating func remove(_ slot: UInt32) { links.remove(slot, from: &ends) }
}

/// The links of several lists of slots; a slot is in at most one list, and its owner remembers which.
package struct SlotLinks: Sendable {
    /// The two ends of one list.
    package struct Ends: Sendable {
        fileprivate var front = SlotLinks.none
        fileprivate var back = SlotLinks.none

        /// The ends of an empty list.
        package init() {}

        /// The slot that was prepended last.
        package var first: UInt32? { front == SlotLinks.none ? nil : front }
        /// The slot at the other end.
        package var last: UInt32? { back == SlotLinks.none ? nil : back }
    }

    private struct Link: Sendable {
        var before = SlotLinks.none
        var after = SlotLinks.none
    }

    fileprivate static let none = UInt32.max
    private var links: [Link] = []

    /// Links of no slots.
    package init() {}

    /// The bytes of memory used.
    package var bytes: Int { links.capacity * MemoryLayout<Link>.stride }

    /// Prepends a slot; it must not be in a list.
    package mutating func prepend(_ slot: UInt32, to ends: inout Ends) {
        links.extend(through: slot, with: Link())
        links[Int(slot)] = Link(before: Self.none, after: ends.front)
        if ends.front == Self.none { ends.back = slot } else { links[Int(ends.front)].before = slot }
        ends.front = slot
    }

    /// Removes a slot from the list that contains it.
    package mutating func remove(_ slot: UInt32, from ends: inout Ends) {
        let link = links[Int(slot)]
        if link.before == Self.none { ends.front = link.after } else { links[Int(link.before)].after = link.after }
        if link.after == Self.none { ends.back = link.before } else { links[Int(link.after)].before = link.before }
        links[Int(slot)] = Link()
    }

    /// The slot behind another one, toward the back.
    package func after(_ slot: UInt32) -> UInt32? { links[Int(slot)].after == Self.none ? nil : links[Int(slot)].after }

    /// The slot in front of another one.
    package func before(_ slot: UInt32) -> UInt32? {
        links[Int(slot)].before == Self.none ? nil : links[Int(slot)].before
    }
}

extension Array {
    /// Makes a table indexed by slot long enough for `slot`, with `value` in the new places.
    ///
    /// It grows by 1/32 instead of doubling, because a policy's memory for each entry is bounded.
    @inlinable package mutating func extend(through slot: UInt32, with value: Element) {
        guard count <= slot else { return }
        makeRoom(for: Int(slot) + 1)
        append(contentsOf: repeatElement(value, count: Int(slot) + 1 - count))
    }

    /// Appends an element, with equally little slack.
    @inlinable package mutating func appendTightly(_ element: Element) {
        makeRoom(for: count + 1)
        append(element)
    }

    @inlinable package mutating func makeRoom(for needed: Int) {
        if needed > capacity { reserveCapacity(needed + needed / 32 + 4) }
    }
}

/// An array that grows by 1/16 and gives memory back, so that it uses little more than it needs.
package struct CompactArray<Element: Sendable>: Sendable {
    @usableFromInline package internal(set) var items: [Element] = []

    /// No elements.
    @inlinable package init() {}

    /// The bytes of memory used.
    @inlinable package var bytes: Int { items.capacity * MemoryLayout<Element>.stride }
    /// The number of elements.
    @inlinable package var count: Int { items.count }

    /// The element at an index below ``count``.
    @inlinable package subscript(_ index: Int) -> Element {
        get { items[index] }
        _modify { yield &items[index] }
    }

    /// Appends an element.
    @inlinable package mutating func append(_ element: Element) {
        if items.count == items.capacity { items.reserveCapacity(items.count + items.count / 16 + 16) }
        items.append(element)
    }

    /// Removes the last element; does nothing if there is none.
    @inlinable package mutating func removeLast() {
        guard !items.isEmpty else { return }
        items.removeLast()
        trim()
    }

    /// Exchanges two elements.
    @inlinable package mutating func swapAt(_ first: Int, _ second: Int) { items.swapAt(first, second) }

    /// Removes the first elements.
    @inlinable package mutating func removeFirst(_ count: Int) {
        items.removeFirst(count)
        trim()
    }

    /// Keeps the elements for which `isKept` is true, asked in order.
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
