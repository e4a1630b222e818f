// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// How a log of segments divides its capacity; what ``Geometry`` is to a store.
struct SegmentShape: Sendable, Hashable {
    /// Bytes of a segment; at least 1.
    let segmentSize: Int
    /// The longest entry that lies in a segment; longer ones lie beside it, cost no copying and free their bytes at once.
    let inlineLimit: Int
    /// What the file of a segment takes while it is written to, however little lies in it.
    let openSize: Int
    /// Bytes kept back: a segment to carry into, and one made in advance.
    let reserve: Int

    /// 256 segments, as a store of as many MiB and more has.
    init(capacity: Int) {
        openSize = max(0, capacity) / 256
        segmentSize = max(1, openSize)
        inlineLimit = segmentSize / 8
        reserve = 2 * openSize
    }

    /// The shape of a store.
    init(_ geometry: Geometry) {
        segmentSize = geometry.segmentSize
        inlineLimit = geometry.inlineLimit
        openSize = geometry.segmentSize
        reserve = 2 * geometry.segmentSize
    }
}
