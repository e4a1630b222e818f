// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The sizes of a store's files, all of which follow from its capacity.
struct Geometry: Sendable, Hashable {
    /// The smallest capacity a store can have: 1 MiB.
    static let minimumCapacity = 1 << 20
    /// Segments are whole pages of this many bytes.
    static let page = 4_096
    /// The smallest segment: a sixteenth of the smallest capacity.
    static let minimumSegmentSize = minimumCapacity / 16
    /// The largest segment, 16 GiB: the index keeps 30 bits of a record's place in units of 16 bytes.
    static let maximumSegmentSize = 16 << 30
    /// Records start at multiples of this many bytes.
    static let unit = 16
    /// The longest record any store can hold, header, detail and inline body together: its units fit 16 bits.
    static let maximumRecord = (1 << 20) - 16
    /// How many segments may live at once: their slots fit 12 bits.
    static let maximumSegments = 4_095

    /// Bytes that the directory may occupy; at least ``minimumCapacity``.
    let capacity: Int
    /// Bytes of a segment's file, table included.
    let segmentSize: Int
    /// The longest body that lies inside its record; a longer one has a blob file.
    let inlineLimit: Int
    /// The longest record; an entry that cannot be written within it is too large.
    let recordLimit: Int

    /// The geometry of a new store of `capacity` bytes.
    ///
    /// Segments are a 256th of the capacity, but at least 1 MiB; a 16th below 16 MiB.
    init(capacity: Int) {
        let capacity = max(capacity, Self.minimumCapacity)
        let mebibyte = 1 << 20
        let size = capacity < 16 * mebibyte ? capacity / 16 : max(capacity / 256, mebibyte)
        self.init(capacity: capacity, segmentSize: size)
    }

    /// The geometry of a store whose segments have the size that its FORMAT says, rounded down to whole pages.
    init(capacity: Int, segmentSize: Int) {
        self.capacity = max(capacity, Self.minimumCapacity)
        self.segmentSize =
            min(max(segmentSize, Self.minimumSegmentSize), Self.maximumSegmentSize) / Self.page * Self.page
        inlineLimit = min(128 << 10, self.segmentSize / 8)
        recordLimit = min(Self.maximumRecord, self.segmentSize / 2)
    }
}
