// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension Array {
    /// Makes a table by slot long enough for `slot`, with `value` in the new places.
    ///
    /// It grows by a thirty-second rather than to the double, because the memory of a policy is bounded for each entry.
    @inlinable package mutating func extend(through slot: UInt32, with value: Element) {
        guard count <= slot else { return }
        makeRoom(for: Int(slot) + 1)
        append(contentsOf: repeatElement(value, count: Int(slot) + 1 - count))
    }

    /// Adds an element at the end with as little slack.
    @inlinable package mutating func appendTightly(_ element: Element) {
        makeRoom(for: count + 1)
        append(element)
    }

    @inlinable package mutating func makeRoom(for needed: Int) {
        if needed > capacity { reserveCapacity(needed + needed / 32 + 4) }
    }
}
