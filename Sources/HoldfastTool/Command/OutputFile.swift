// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastStorage
    internal import Synchronization

    /// A file that a command writes: it appears, or is replaced, once it is whole.
    ///
    /// Until then the bytes lie beside it, in a file whose name nobody else has. What is no plain file, such as a pipe or a device, is
    /// written as it is.
    final class OutputFile: Sendable {
        private let target: URL
        /// Where the bytes lie meanwhile; nil where they go to the target itself.
        private let draft: URL?
        private let handle: FileHandle
        private let isOpen = Mutex(true)

        private init(_ path: URL, isPrivate: Bool, continuingAt start: Int?) throws(CommandFailure) {
            target = path.resolvingSymlinksInPath()
            let type = try? FileManager.default.attributesOfItem(atPath: target.path)[.type] as? FileAttributeType
            let refused = CommandFailure("\(path.path) cannot be written; check the directory and its permissions")
            if type == .typeDirectory { throw CommandFailure("\(path.path) is a directory; name a file") }
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
            let rights: [FileAttributeKey: Any]? = isPrivate ? [.posixPermissions: 0o600] : nil
            guard FileManager.default.createFile(atPath: draft.path, contents: nil, attributes: rights),
                let handle = FileHandle(forWritingAtPath: draft.path)
            else { throw refused }
            self.draft = draft
            self.handle = handle
        }

        deinit { discard() }

        /// Opens a file, off the cooperative pool.
        ///
        /// - Parameters:
        ///   - path: where it is to lie, once it is whole.
        ///   - isPrivate: whether nobody but its owner may read it.
        ///   - start: how much of the file stays and is added to in its place, whatever becomes of it; nil: none, as above.
        static func open(
            _ path: URL,
            isPrivate: Bool = false,
            continuingAt start: Int? = nil
        ) async throws -> OutputFile {
            try await BlockingWork.run { try OutputFile(path, isPrivate: isPrivate, continuingAt: start) }
        }

        /// Adds bytes at the end, off the cooperative pool.
        func append(_ chunk: ByteChunk) async throws {
            try await BlockingWork.run { [self] in try write(chunk.withUnsafeBytes { Data($0) }) }
        }

        /// Adds bytes at the end. Blocks.
        func write(_ data: Data) throws(CommandFailure) {
            do {
                try handle.write(contentsOf: data)
            } catch {
                throw CommandFailure("\(target.path) cannot be written any further; see whether the device is full")
            }
        }

        /// The bytes are whole: gives the file its name.
        func finish() async throws {
            try await BlockingWork.run { [self] in
                guard close() else { return }
                guard let draft else { return }
                guard rename(draft.path, target.path) == 0 else {
                    try? FileManager.default.removeItem(at: draft)
                    throw CommandFailure("\(target.path) cannot be replaced; check the directory and its permissions")
                }
            }
        }

        /// Takes away what was written; nothing after ``finish()``.
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

        /// Whether a path leads to something that is written as it is, such as a pipe or a device.
        static func isDevice(_ path: String) -> Bool {
            let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
            let type = try? FileManager.default.attributesOfItem(atPath: resolved)[.type] as? FileAttributeType
            return type.map { $0 != .typeRegular && $0 != .typeDirectory } ?? false
        }

        /// The name to save a URL's content under: the last part of its path, and never a way out of the folder.
        static func name(of url: URL) -> String {
            let path = url.absoluteString.prefix { $0 != "?" && $0 != "#" }
            let rest = path.range(of: "://").map { path[$0.upperBound...] } ?? path
            let parts = rest.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count > 1, let last = parts.last, !last.isEmpty, last != ".", last != ".." else {
                return "index.html"
            }
            // The text of a URL has no control characters, and escapes are left as they are.
            return String(last.prefix(200))
        }
    }
#endif
