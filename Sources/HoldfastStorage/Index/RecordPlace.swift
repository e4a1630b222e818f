// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where a record lies: which of the live segments, and which part of it.
struct RecordPlace: Sendable, Hashable {
    /// The most segments that may live at once: the slot has 12 bits, of which the last number stays unused.
    static let maximumSlots = 4_095

    /// The segment, by its slot among the live ones; below ``maximumSlots``, the index keeps 12 bits.
    var slot: UInt16
    /// The offset in the segment file, in units of 16 bytes.
    var unit: UInt32
    /// The length of the record, in units of 16 bytes, rounded up.
    var units: UInt16

    /// The place of `units` units from `unit` on in the segment with this slot.
    init(slot: UInt16, unit: UInt32, units: UInt16) {
        self.slot = slot
        self.unit = unit
        self.units = units
    }
}

extension RecordPlace {
    /// The place in 60 bits: slot, unit, units, from the highest down; slots above 12 bits lose the bits above.
    var packed: UInt64 {
        (UInt64(slot) & 0xFFF) << 48 | UInt64(unit) << 16 | UInt64(units)
    }

    /// The place whose 60 bits these are.
    init(packed: UInt64) {
        slot = UInt16(truncatingIfNeeded: packed >> 48) & 0xFFF
        unit = UInt32(truncatingIfNeeded: packed >> 16)
        units = UInt16(truncatingIfNeeded: packed)
    }
}
