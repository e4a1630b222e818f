// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import HoldfastCommand

    /// Bytes of a file or of standard input, read from beginning to end; calls block.
    struct LogSource {
        /// The name that the user gave; `-` is standard input.
        let name: String
        /// Bytes of the file; nil for a pipe, where it is unknown.
        let size: Int?
        /// Bytes returned so far.
        private(set) var position = 0
        private let handle: FileHandle
        private var ahead = Data()

        /// Opens a file, or takes standard input for `-`.
        init(_ name: String) throws(CommandFailure) {
            self.name = name
            if name == "-" {
                handle = .standardInput
                size = nil
                return
            }
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory) else {
                throw CommandFailure("\(name) does not exist; check the path, or use - to read standard input")
            }
            guard !isDirectory.boolValue, let handle = FileHandle(forReadingAtPath: name) else {
                throw CommandFailure("cannot read \(name); give the name of a file, and check its permissions")
            }
            self.handle = handle
            let attributes = try? FileManager.default.attributesOfItem(atPath: name)
            let isRegular = attributes?[.type] as? FileAttributeType == .typeRegular
            size = isRegular ? (attributes?[.size] as? NSNumber)?.intValue : nil
        }

        /// The first bytes, at most a block, which are not consumed.
        mutating func peek() throws(CommandFailure) -> Data {
            if ahead.isEmpty { ahead = try block() }
            return ahead
        }

        /// The next bytes; none at the end.
        mutating func read() throws(CommandFailure) -> Data {
            var bytes = ahead
            ahead = Data()
            if bytes.isEmpty { bytes = try block() }
            position += bytes.count
            return bytes
        }

        /// All remaining bytes.
        ///
        /// - Throws: if there are more than `limit`.
        mutating func rest(limit: Int, _ isTooLong: @autoclosure () -> CommandFailure) throws(CommandFailure) -> Data {
            if let size, size > limit { throw isTooLong() }
            var all = Data()
            while true {
                let bytes = try read()
                if bytes.isEmpty { return all }
                all += bytes
                if all.count > limit { throw isTooLong() }
            }
        }

        private func block() throws(CommandFailure) -> Data {
            do {
                return try handle.read(upToCount: 1 << 20) ?? Data()
            } catch {
                throw CommandFailure("cannot read any more of \(name): \(error)")
            }
        }
    }

    /// The lines of a source, one after another; needs memory for one block and one line.
    struct LineReader {
        /// A longer line is skipped.
        static let longestLine = 1 << 16

        private(set) var source: LogSource
        /// The number of the line returned last; the first is 1.
        private(set) var number = 0
        private var bytes: [UInt8] = []
        private var start = 0
        private var isAtEnd = false

        init(_ source: LogSource) {
            self.source = source
        }

        /// The next line without its end; nil at the end of the source.
        ///
        /// A line that is too long is returned as its first 64 KiB.
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
                // The rest of a line that is too long is read and dropped.
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

    /// The input formats that can be replayed.
    enum ReplayFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
        /// Detected by the name, or else by the first byte.
        case auto
        /// An access log in the common or combined format.
        case log
        /// An HTTP archive, as browsers export it.
        case har
        /// Requests in 12 bytes each.
        case trace

        /// The format of a source if its name does not show it.
        static func sniff(_ start: Data, name: String) throws(CommandFailure) -> ReplayFormat {
            if start.starts(with: [0x1F, 0x8B]) {
                throw CommandFailure("\(name) is compressed; use: zcat \(name) | holdfast replay -")
            }
            if start.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) || start.starts(with: Array("BZh".utf8))
                || start.starts(with: [0xFD, 0x37])
            {
                throw CommandFailure("\(name) is compressed; unpack it and pipe it into: holdfast replay -")
            }
            let text = start.starts(with: [0xEF, 0xBB, 0xBF]) ? start.dropFirst(3) : start
            let first = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
            if first == UInt8(ascii: "{") { return .har }
            // A damaged line of a log has a few; of requests in 12 bytes each, sizes and keys are mostly zeros.
            let probed = start.prefix(4_096)
            if 16 * probed.count(where: { $0 == 0 }) > probed.count {
                throw CommandFailure("\(name) is not text; use --format trace if it contains requests of 12 bytes each")
            }
            return .log
        }

        /// The format that a name shows; nil if it shows none.
        init?(name: String) {
            let lower = name.lowercased()
            if lower.hasSuffix(".har") {
                self = .har
            } else if lower.hasSuffix(".trace") {
                self = .trace
            } else {
                return nil
            }
        }
    }
#endif
