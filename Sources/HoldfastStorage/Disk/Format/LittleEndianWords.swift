// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Numbers of the disk format in raw memory: little-endian, at any alignment.
///
/// None of these checks its bounds in a release build: whoever calls has compared the offset with the size before.
extension UnsafeRawBufferPointer {
    @inline(__always)
    func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: Number.Type = Number.self)
        -> Number
    {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
    }

    /// Whether all bytes of `range` are zero.
    func isZero(_ range: Range<Int>) -> Bool {
        self[range].allSatisfy { $0 == 0 }
    }

    /// The part of these bytes in `range`, which must lie within them.
    @inline(__always)
    func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[range])
    }
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    func put<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number, at offset: Int) {
        storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
    }

    /// Copies `bytes` to `offset`; nothing where there are none.
    @inline(__always)
    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard !bytes.isEmpty else { return }
        UnsafeMutableRawBufferPointer(rebasing: self[offset...]).copyMemory(from: bytes)
    }
}

extension [UInt8] {
    /// An array of `count` bytes that `fill` finds zeroed and writes in place.
    init(zeroed count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
        self.init(unsafeUninitializedCapacity: count) { buffer, filled in
            buffer.initialize(repeating: 0)
            fill(UnsafeMutableRawBufferPointer(buffer))
            filled = count
        }
    }
}
