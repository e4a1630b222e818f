// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The sizes of the entries a policy holds, by slot, in 4 bytes each, and their sum.
///
/// Every number of bytes is kept exactly; those from 4 GiB on, of which there are few, in a table of their own.
struct SlotSizes: Sendable {
    private static let absent = UInt32.max
    private static let long = UInt32.max - 1

    private var sizes: [UInt32] = []
    private var longSizes: [UInt32: Int] = [:]
    private(set) var sum = 0
    private(set) var count = 0

    /// The bytes of memory taken.
    var bytes: Int { sizes.capacity * 4 + longSizes.capacity * 16 }

    /// Whether the slot has a size.
    func holds(_ slot: UInt32) -> Bool {
        slot < sizes.count && sizes[Int(slot)] != Self.absent
    }

    /// The size of a slot; 0 where it has none.
    subscript(_ slot: UInt32) -> Int {
        guard slot < sizes.count else { return 0 }
        let size = sizes[Int(slot)]
        if size < Self.long { return Int(size) }
        return size == Self.absent ? 0 : longSizes[slot] ?? 0
    }

    /// Gives a slot a size, in place of one it may have.
    mutating func set(_ slot: UInt32, _ size: Int) {
        remove(slot)
        sizes.extend(through: slot, with: Self.absent)
        let size = max(0, size)
        if size < Int(Self.long) {
            sizes[Int(slot)] = UInt32(size)
        } else {
            sizes[Int(slot)] = Self.long
            longSizes[slot] = size
        }
        sum += size
        count += 1
    }

    /// Takes the size of a slot away.
    mutating func remove(_ slot: UInt32) {
        guard holds(slot) else { return }
        sum -= self[slot]
        count -= 1
        if sizes[Int(slot)] == Self.long { longSizes[slot] = nil }
        sizes[Int(slot)] = Self.absent
    }
}
