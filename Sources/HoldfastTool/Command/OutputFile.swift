// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastStorage
    internal import Synchronization

    /// A file that a command writes; it appears, or is replaced, when it is complete.
    ///
    /// Until then the bytes are in a file with a unique name in the same directory. Anything that is not a regular
    /// file, such as a pipe or a device, is written directly.
    final class OutputFile: Sendable {
        private let target: URL
        /// The temporary file; nil if the target itself is written.
        private let draft: URL?
        private let handle: FileHandle
        private let isOpen = Mutex(true)

        private init(_ path: URL, isPrivate: Bool, continuingAt start: Int?) throws(CommandFailure) {
            target = path.resolvingSymlinksInPath()
            let attributes = try? FileManager.default.attributesOfItem(atPath: target.path)
            let type = attributes?[.type] as? FileAttributeType
            let refused = CommandFailure("cannot write \(path.path); check the directory and its permissions")
            if type == .typeDirectory { throw CommandFailure("\(path.path) is a directory; give the name of a file") }
            if let type, type != .typeRegular {
                draft = nil
                guard let handle = FileHandle(forWritingAtPath: target.path) else { throw refused }
                self.handle = handle
                return
            }
            if let start {
                let isThere = type != nil || FileManager.default.createFile(atPath: target.path, contents: nil)
                guard isThere, let handle = FileHandle(forUpdatingAtPath: target.path),
                    (try? handle.truncate(atOffset: UInt64(start))) != nil, (try? handle.seekToEnd()) != nil
                else { throw refused }
                draft = nil
                self.handle = handle
                return
            }
            let draft = target.deletingLastPathComponent()
                .appendingPathComponent(".\(target.lastPathComponent.prefix(200)).\(UUID().uuidString.prefix(8)).part")
            let mode = isPrivate ? nil : (attributes?[.posixPermissions] as? NSNumber)?.uint16Value
            // What replaces a file is nobody else's until it has that file's permissions.
            let rights: [FileAttributeKey: Any]? = isPrivate || mode != nil ? [.posixPermissions: 0o600] : nil
            guard FileManager.default.createFile(atPath: draft.path, contents: nil, attributes: rights),
                let handle = FileHandle(forWritingAtPath: draft.path)
            else { throw refused }
            // A file that is replaced keeps its permissions, but not the right to run as its owner: the content is new.
            if let mode { fchmod(handle.fileDescriptor, mode_t(mode & 0o777)) }
            self.draft = draft
            self.handle = handle
        }

        deinit { discard() }

        /// Opens a file, outside the cooperative pool.
        ///
        /// - Parameters:
        ///   - path: the path of the file when it is complete.
        ///   - isPrivate: whether only its owner may read it.
        ///   - start: how many bytes of the existing file to keep and append to in place, whatever happens; nil: none,
        ///     as described above.
        static func open(
            _ path: URL,
            isPrivate: Bool = false,
            continuingAt start: Int? = nil
        ) async throws -> OutputFile {
            try await BlockingWork.run { try OutputFile(path, isPrivate: isPrivate, continuingAt: start) }
        }

        /// Appends bytes, outside the cooperative pool.
        func append(_ chunk: ByteChunk) async throws {
            try await BlockingWork.run { [self] in try write(chunk.withUnsafeBytes { Data($0) }) }
        }

        /// Appends bytes. Blocks.
        func write(_ data: Data) throws(CommandFailure) {
            do {
                try handle.write(contentsOf: data)
            } catch {
                throw CommandFailure("cannot write any more to \(target.path); check whether the device is full")
            }
        }

        /// Gives the complete file its name.
        func finish() async throws {
            try await BlockingWork.run { [self] in
                guard close() else { return }
                guard let draft else { return }
                guard rename(draft.path, target.path) == 0 else {
                    try? FileManager.default.removeItem(at: draft)
                    throw CommandFailure("cannot replace \(target.path); check the directory and its permissions")
                }
            }
        }

        /// Removes what was written; does nothing after ``finish()``.
        func discard() {
            guard close(), let draft else { return }
            try? FileManager.default.removeItem(at: draft)
        }

        private func close() -> Bool {
            let isFirst = isOpen.withLock { isOpen in
                defer { isOpen = false }
                return isOpen
            }
            if isFirst { try? handle.close() }
            return isFirst
        }

        /// Whether a path leads to something that is written directly, such as a pipe or a device.
        static func isDevice(_ path: String) -> Bool {
            let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
            let type = try? FileManager.default.attributesOfItem(atPath: resolved)[.type] as? FileAttributeType
            return type.map { $0 != .typeRegular && $0 != .typeDirectory } ?? false
        }

        /// The file name for a URL's content: the last part of its path, which can never lead out of the folder.
        static func name(of url: URL) -> String {
            let path = url.absoluteString.prefix { $0 != "?" && $0 != "#" }
            let rest = path.range(of: "://").map { path[$0.upperBound...] } ?? path
            let parts = rest.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count > 1, let last = parts.last, !last.isEmpty, last != ".", last != ".." else {
                return "index.html"
            }
            // The text of a URL has no control characters, and escapes stay.
            return String(last.prefix(200))
        }
    }
#endif
