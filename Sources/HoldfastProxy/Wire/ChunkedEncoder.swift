// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import NIOCore

    /// Writes a message body in the chunked transfer coding (RFC 9112 §7.1).
    package enum ChunkedEncoder {
        /// The most bytes that `begin` writes.
        package static let overhead = 20

        /// Writes what stands before a chunk of `count` bytes, at least one.
        package static func begin(_ count: Int, in buffer: inout ByteBuffer) {
            var shift = max(0, (Int.bitWidth - 1 - max(count, 1).leadingZeroBitCount) / 4 * 4)
            while shift >= 0 {
                let digit = UInt8(truncatingIfNeeded: count >> shift & 0xF)
                buffer.writeInteger(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
                shift -= 4
            }
            end(in: &buffer)
        }

        /// Writes what stands behind a chunk.
        package static func end(in buffer: inout ByteBuffer) {
            buffer.writeInteger(0x0D0A as UInt16)
        }

        /// Writes the last chunk, without trailers.
        package static func finish(in buffer: inout ByteBuffer) {
            buffer.writeStaticString("0\r\n\r\n")
        }
    }
#endif
