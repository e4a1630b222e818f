// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which keys plain S3-FIFO evicted from its small log of late: about as many as there are entries.
struct SegmentGhosts: Sendable {
    /// By the hash's place: the hash, and when it was noted.
    private var notes: [UInt64] = []
    private var clock: UInt32 = 0

    /// The bytes of memory taken.
    var bytes: Int { notes.capacity * 8 }

    mutating func note(_ hash: UInt32, entries: Int) {
        if notes.count < entries {
            let old = notes
            notes = Array(repeating: 0, count: entries + entries / 8 + 16)
            for note in old where note != 0 { notes[place(UInt32(truncatingIfNeeded: note >> 32))] = note }
        }
        guard !notes.isEmpty else { return }
        clock &+= 1
        notes[place(hash)] = UInt64(hash) << 32 | UInt64(clock)
    }

    /// Whether the key is among them; if so it is forgotten.
    mutating func takes(_ hash: UInt32, entries: Int) -> Bool {
        guard !notes.isEmpty else { return false }
        let note = notes[place(hash)]
        guard note != 0, UInt32(truncatingIfNeeded: note >> 32) == hash else { return false }
        notes[place(hash)] = 0
        return Int(clock &- UInt32(truncatingIfNeeded: note)) <= entries
    }

    private func place(_ hash: UInt32) -> Int {
        Int(truncatingIfNeeded: (UInt64(hash) &* UInt64(truncatingIfNeeded: notes.count)) >> 32)
    }
}
