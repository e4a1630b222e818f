// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a store hands to a ``StoreSeal``, and the context that ties the bytes to their place.
///
/// The context of no two parts is the same, so that bytes moved from one place to another do not open: neither a body beneath
/// another entry's head, nor a chunk in another chunk's stead, nor a body that was cut off at the end of a chunk. A copy that
/// reclaim makes of a record keeps its context.
///
/// What gets a new order number (a freshening, a pin) is opened and sealed anew, and so goes over to the present key. A blob
/// stays as it is under its entry's newer records: its chunks are tied to the blob's own number, and the number of their key
/// is noted beside each chunk, not taken from the record.
enum SealedPart: Sendable, Hashable {
    /// Key, variant, tags and metadata of an entry, or the prefix of a mark.
    ///
    /// `facts` are the bytes of the record's header that a copy keeps, so that none of them can be changed unseen; empty where
    /// the header is not bound.
    case detail(order: UInt64, facts: [UInt8] = [])
    /// A body that lies in the record.
    case body(order: UInt64)
    /// A chunk of a blob.
    case chunk(blob: UInt64, index: UInt64, isLast: Bool)

    /// One byte for the kind, then the numbers, little-endian and of fixed length, then the facts.
    var context: [UInt8] {
        switch self {
        case .detail(let order, let facts): SealedPart.frame(1, order) + facts
        case .body(let order): SealedPart.frame(2, order)
        case .chunk(let blob, let index, let isLast): SealedPart.frame(isLast ? 4 : 3, blob, index)
        }
    }

    private static func frame(_ kind: UInt8, _ numbers: UInt64...) -> [UInt8] {
        [kind] + numbers.flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
    }
}
