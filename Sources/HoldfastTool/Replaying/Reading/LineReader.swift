// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import HoldfastCommand

    /// The lines of a source, one after the other; memory is that of one block and one line.
    struct LineReader {
        /// A line longer than this is passed over.
        static let longestLine = 1 << 16

        private(set) var source: LogSource
        /// The number of the line handed out last; the first is 1.
        private(set) var number = 0
        private var bytes: [UInt8] = []
        private var start = 0
        private var isAtEnd = false

        init(_ source: LogSource) {
            self.source = source
        }

        /// The next line without its end; nil at the end of the source.
        ///
        /// One that is too long comes out empty of all but its first 64 KiB.
        mutating func next() throws(CommandFailure) -> ArraySlice<UInt8>? {
            var searched = start
            var kept: [UInt8]?
            while true {
                if let end = newline(from: searched) {
                    let line = bytes[start..<end]
                    start = end + 1
                    number += 1
                    return kept.map { $0[...] } ?? line
                }
                if isAtEnd {
                    let line = bytes[start...]
                    start = bytes.count
                    guard kept != nil || !line.isEmpty else { return nil }
                    number += 1
                    return kept.map { $0[...] } ?? line
                }
                // The rest of a line that is too long is read and forgotten.
                if kept == nil, bytes.count - start > Self.longestLine {
                    kept = Array(bytes[start..<start + Self.longestLine])
                }
                if kept != nil { start = bytes.count }
                bytes.removeSubrange(..<start)
                start = 0
                searched = bytes.count
                let more = try source.read()
                isAtEnd = more.isEmpty
                bytes += more
            }
        }

        private func newline(from place: Int) -> Int? {
            bytes.withUnsafeBytes { raw in
                guard place < raw.count, let base = raw.baseAddress,
                    let found = memchr(base + place, Int32(UInt8(ascii: "\n")), raw.count - place)
                else { return nil }
                return UnsafeRawPointer(found) - base
            }
        }
    }
#endif
