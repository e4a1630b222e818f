// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A row that has left the index, with the segment that held its record then.
struct GoneRow: Sendable {
    let row: IndexRow
    let segment: Segment?
}
