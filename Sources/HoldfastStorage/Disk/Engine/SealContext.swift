// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a sealed part is bound to, so that none can stand in for another.
enum SealContext {
    /// The detail of the record of this order.
    static func detail(order: UInt64) -> [UInt8] { bytes(1, order, 0) }

    /// The inline body of the record of this order.
    static func body(order: UInt64) -> [UInt8] { bytes(2, order, 0) }

    /// A chunk of a blob; the last one says so, so that none can be cut off.
    static func chunk(blob: UInt64, index: Int, isLast: Bool) -> [UInt8] {
        bytes(isLast ? 4 : 3, blob, UInt64(clamping: index))
    }

    private static func bytes(_ kind: UInt8, _ first: UInt64, _ second: UInt64) -> [UInt8] {
        var encoder = ByteEncoder()
        encoder.put(kind)
        encoder.put(first)
        encoder.put(second)
        return encoder.bytes
    }
}
