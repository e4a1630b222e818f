// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A list of slots, linked by index in 8 bytes a slot; every step O(1).
///
/// Several lists of one policy share their links by ``SlotLinks``, because a slot is in one of them at a time.
package struct SlotList: Sendable {
    private var links = SlotLinks()
    private var ends = SlotLinks.Ends()

    /// An empty list.
    package init() {}

    /// The bytes of memory taken.
    package var bytes: Int { links.bytes }
    /// The slot put in front last.
    package var first: UInt32? { ends.first }
    /// The slot at the other end.
    package var last: UInt32? { ends.last }

    /// Puts a slot in front; it must not be in the list.
    package mutating func prepend(_ slot: UInt32) { links.prepend(slot, to: &ends) }

    /// Takes a slot out; it must be in the list.
    package mutating func remove(_ slot: UInt32) { links.remove(slot, from: &ends) }
}

/// The links of lists of slots; a slot is in one list at most, which its owner remembers.
package struct SlotLinks: Sendable {
    /// The two ends of one list.
    package struct Ends: Sendable {
        fileprivate var front = SlotLinks.none
        fileprivate var back = SlotLinks.none

        /// The ends of an empty list.
        package init() {}

        /// The slot put in front last.
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

    /// The bytes of memory taken.
    package var bytes: Int { links.capacity * MemoryLayout<Link>.stride }

    /// Puts a slot in front; it must not be in a list.
    package mutating func prepend(_ slot: UInt32, to ends: inout Ends) {
        links.extend(through: slot, with: Link())
        links[Int(slot)] = Link(before: Self.none, after: ends.front)
        if ends.front == Self.none { ends.back = slot } else { links[Int(ends.front)].before = slot }
        ends.front = slot
    }

    /// Takes a slot out of the list that it is in.
    package mutating func remove(_ slot: UInt32, from ends: inout Ends) {
        let link = links[Int(slot)]
        if link.before == Self.none { ends.front = link.after } else { links[Int(link.before)].after = link.after }
        if link.after == Self.none { ends.back = link.before } else { links[Int(link.after)].before = link.before }
        links[Int(slot)] = Link()
    }

    /// The slot behind another one, towards the back.
    package func after(_ slot: UInt32) -> UInt32? { links[Int(slot)].after == Self.none ? nil : links[Int(slot)].after }

    /// The slot in front of another one.
    package func before(_ slot: UInt32) -> UInt32? {
        links[Int(slot)].before == Self.none ? nil : links[Int(slot)].before
    }
}
