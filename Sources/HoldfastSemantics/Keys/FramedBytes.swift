// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Byte strings one after another, each preceded by its length, so that different lists never give the same bytes.
///
/// A frame is the byte count as a big-endian UInt32, then the bytes. Keys are framed instead of being joined by a delimiter because
/// a delimiter can occur in a part.
package struct FramedBytes: Sendable, Hashable {
    /// All frames so far.
    package private(set) var bytes: [UInt8]

    /// Creates an empty list.
    package init() { bytes = [] }

    /// Creates an empty list with room for this many bytes.
    init(capacity: Int) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// Appends one frame.
    ///
    /// - Parameter part: its content; bytes beyond 2^32 − 1 are cut off.
    package mutating func append(_ part: [UInt8]) {
        part.withUnsafeBufferPointer { append(frame: $0) }
    }

    /// Appends one frame with the UTF-8 bytes of a text.
    package mutating func append(_ part: String) {
        var part = part
        part.withUTF8 { append(frame: $0) }
    }

    private mutating func append(frame part: UnsafeBufferPointer<UInt8>) {
        let count = UInt32(clamping: part.count)
        withUnsafeBytes(of: count.bigEndian) { bytes.append(contentsOf: $0.bindMemory(to: UInt8.self)) }
        // A slice would be appended byte by byte.
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: part[..<Int(count)]))
    }

    /// Appends all frames of another list.
    package mutating func append(frames: FramedBytes) { bytes.append(contentsOf: frames.bytes) }

    /// Reads frames; bytes from a disk or a network never make it trap.
    package struct Reader: Sendable {
        private let bytes: [UInt8]
        /// Where the next frame begins.
        package private(set) var position = 0

        /// Starts at the first frame.
        package init(_ bytes: [UInt8]) { self.bytes = bytes }

        /// Starts at a frame that begins there.
        package init(_ bytes: [UInt8], from position: Int) {
            (self.bytes, self.position) = (bytes, min(position, bytes.count))
        }

        /// Whether nothing is left.
        package var isAtEnd: Bool { position >= bytes.count }

        /// The next frame's content.
        ///
        /// - Returns: nil at the end, and if the rest is not a whole frame; then the position stays.
        package mutating func next() -> [UInt8]? {
            nextRange().map { Array(bytes[$0]) }
        }

        private mutating func nextRange() -> Range<Int>? {
            bytes.withUnsafeBytes { bytes in
                var walk = FrameWalk(bytes, at: position)
                defer { position = walk.position }
                return walk.next()
            }
        }

        /// The next frame's content as text.
        ///
        /// - Returns: nil as ``next()`` does, and if the content is not UTF-8.
        package mutating func nextString() -> String? {
            let start = position
            guard let range = nextRange() else { return nil }
            let text = bytes.withUnsafeBytes { String(validating: UnsafeRawBufferPointer(rebasing: $0[range])) }
            if text == nil { position = start }
            return text
        }
    }
}

extension String {
    /// The text that UTF-8 bytes stand for; nil if they are something else. A third of the cost of the standard library's own, which
    /// is not specialized.
    init?(validating bytes: UnsafeRawBufferPointer) {
        self.init(decoding: bytes, as: UTF8.self)
        // Anything else was repaired, so that the bytes differ.
        guard withUTF8({ UnsafeRawBufferPointer($0).hasSameBytes(as: bytes) }) else { return nil }
    }
}

/// Reads frames (``FramedBytes``) where they stand; no bytes make it trap.
package struct FrameWalk {
    private let bytes: UnsafeRawBufferPointer
    /// Where the next frame begins.
    package private(set) var position: Int

    /// - Parameter position: within the bytes or at their end.
    package init(_ bytes: UnsafeRawBufferPointer, at position: Int = 0) {
        (self.bytes, self.position) = (bytes, position)
    }

    /// Whether nothing is left.
    package var isAtEnd: Bool { position >= bytes.count }

    /// Where the content of the next frame stands; nil at the end, and if the rest is not a whole frame: then the position stays.
    @inline(__always)
    package mutating func next() -> Range<Int>? {
        guard bytes.count - position >= 4 else { return nil }
        let count = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self)))
        let start = position + 4
        guard bytes.count - start >= count else { return nil }
        position = start + count
        return Range(uncheckedBounds: (start, position))
    }
}
