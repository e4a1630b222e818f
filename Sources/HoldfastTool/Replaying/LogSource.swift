// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import HoldfastCommand

    /// Bytes of a file or of standard input, read from the front to the back; calls block.
    struct LogSource {
        /// What the user called it; `-` is standard input.
        let name: String
        /// Bytes of the file; nil for a pipe, which does not know.
        let size: Int?
        /// Bytes handed out so far.
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
                throw CommandFailure("\(name) is not there; check the path, or write - to read standard input")
            }
            guard !isDirectory.boolValue, let handle = FileHandle(forReadingAtPath: name) else {
                throw CommandFailure("\(name) cannot be read; name a file, and check its permissions")
            }
            self.handle = handle
            let attributes = try? FileManager.default.attributesOfItem(atPath: name)
            let isRegular = attributes?[.type] as? FileAttributeType == .typeRegular
            size = isRegular ? (attributes?[.size] as? NSNumber)?.intValue : nil
        }

        /// The first bytes, at most a block of them, which are still to be read.
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

        /// All bytes that are left.
        ///
        /// - Throws: when there are more than `limit`.
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
                throw CommandFailure("\(name) cannot be read any further: \(error)")
            }
        }
    }

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

    /// The forms of input that can be replayed.
    enum ReplayFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
        /// Told by the name, else by the first byte.
        case auto
        /// An access log in the common or combined form.
        case log
        /// An HTTP archive, as browsers export it.
        case har
        /// Requests in 12 bytes each.
        case trace

        /// The form of a source that is not told by its name.
        static func sniff(_ start: Data, name: String) throws(CommandFailure) -> ReplayFormat {
            if start.starts(with: [0x1F, 0x8B]) {
                throw CommandFailure("\(name) is compressed; write: zcat \(name) | holdfast replay -")
            }
            if start.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) || start.starts(with: Array("BZh".utf8))
                || start.starts(with: [0xFD, 0x37])
            {
                throw CommandFailure("\(name) is compressed; unpack it into: holdfast replay -")
            }
            let text = start.starts(with: [0xEF, 0xBB, 0xBF]) ? start.dropFirst(3) : start
            let first = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
            if first == UInt8(ascii: "{") { return .har }
            if start.prefix(4_096).contains(0) {
                throw CommandFailure("\(name) is no text; write --format trace if it holds requests in 12 bytes each")
            }
            return .log
        }

        /// The form that a name tells; nil where it tells none.
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
