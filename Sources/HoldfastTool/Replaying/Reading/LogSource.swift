// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
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
#endif
