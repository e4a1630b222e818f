// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
private import Synchronization

/// The bytes of a file, chunk by chunk: all of them as they were when the snapshot was taken, or an error.
///
/// Reads on threads for blocking work, because a file may be on a slow disk. The file is open from the first chunk to the last,
/// and closed when the source is cancelled or released.
final class FileSource: ByteSource {
    private struct State {
        var file: SnapshotReader?
        var offset = 0
        var isCancelled = false
        var waiting: CheckedContinuation<ByteChunk?, any Error>?
    }

    private static let chunkSize = 256 << 10
    private let snapshot: FileSnapshot
    private let state = Mutex(State())

    init(_ snapshot: FileSnapshot) { self.snapshot = snapshot }

    func next() async throws -> ByteChunk? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if !state.isCancelled { state.waiting = continuation }
                    return state.isCancelled
                }
                if isCancelled { return continuation.resume(throwing: CancellationError()) }
                BlockingWork.enqueue {
                    let result = Result { try self.read() }
                    self.state.withLock { $0.waiting.take() }?.resume(with: result)
                }
            }
        } onCancel: {
            cancel()
        }
    }

    func cancel() {
        let (file, waiting) = state.withLock { state in
            state.isCancelled = true
            return (state.file.take(), state.waiting.take())
        }
        waiting?.resume(throwing: CancellationError())
        // Closes the file, once a read in progress has released it too.
        withExtendedLifetime(file) {}
    }

    /// The next chunk; never called twice at a time, because a source has one reader.
    private func read() throws -> ByteChunk? {
        let (opened, offset) = state.withLock { ($0.file, $0.offset) }
        // The end was reached, and the file closed then.
        if opened == nil, offset > 0, offset == snapshot.size { return nil }
        let file = try opened ?? snapshot.openFile()
        let count = min(FileSource.chunkSize, snapshot.size - offset)
        let bytes = try file.bytes(from: offset, count: count)
        let isLast = offset + count == snapshot.size
        if isLast { try file.checkUnchanged() }
        state.withLock { state in
            state.offset = offset + count
            state.file = isLast || state.isCancelled ? nil : file
        }
        return bytes.isEmpty ? nil : ByteChunk(bytes)
    }
}

/// Identifies a file and its state, to notice if it is replaced or changed.
///
/// A change is missed if file, size and modification time stay the same, to a tenth of a microsecond and within the file
/// system's clock tick.
struct FileSnapshot: Sendable, Hashable {
    /// Where the file is.
    let url: URL
    /// Its size in bytes.
    let size: Int
    private let device: UInt64
    private let number: UInt64
    private let changed: Date

    /// The file that is there now. Blocks while it asks the file system.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` if there is no regular file.
    init(of url: URL) throws {
        let path = url.resolvingSymlinksInPath().path
        guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw FileSnapshot.unreadable(url, what: "does not exist")
        }
        guard attributes[.type] as? FileAttributeType == .typeRegular,
            let size = (attributes[.size] as? NSNumber)?.uint64Value
        else { throw FileSnapshot.unreadable(url, what: "is not a regular file") }
        self.url = url
        self.size = Int(clamping: size)
        device = (attributes[.systemNumber] as? NSNumber)?.uint64Value ?? 0
        number = (attributes[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0
        changed = attributes[.modificationDate] as? Date ?? .distantPast
    }

    /// Opens the file. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` if the file was replaced, removed or changed.
    func openFile() throws -> SnapshotReader {
        let reader: SnapshotReader
        do {
            reader = try SnapshotReader(self)
        } catch {
            throw FileSnapshot.unreadable(url, what: "no longer exists or cannot be opened")
        }
        try reader.checkUnchanged(isOpening: true)
        return reader
    }

    fileprivate static func unreadable(_ url: URL, what: String) -> ServiceError {
        ServiceError.badRequest(
            "The file \(url.lastPathComponent) \(what); do not move or change it until the call has ended."
        )
    }
}

/// The opened file of a snapshot.
final class SnapshotReader: Sendable {
    private let file: ReadableFile
    private let snapshot: FileSnapshot

    fileprivate init(_ snapshot: FileSnapshot) throws {
        self.snapshot = snapshot
        file = try ReadableFile(snapshot.url.resolvingSymlinksInPath().path)
    }

    /// Reads `count` bytes from `offset`. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` if the file has fewer.
    func bytes(from offset: Int, count: Int) throws -> [UInt8] {
        let bytes = (try? file.read(from: offset, count: count)) ?? []
        guard bytes.count == count else {
            throw FileSnapshot.unreadable(snapshot.url, what: "cannot be read to its end")
        }
        return bytes
    }

    /// Throws ``ServiceError`` `.badRequest` if the file was changed or replaced. Blocks.
    ///
    /// A file that was removed after it was opened can still be read, and is complete if it has its size.
    fileprivate func checkUnchanged(isOpening: Bool = false) throws {
        let isRemoved = (try? snapshot.url.checkResourceIsReachable()) != true
        if isRemoved, !isOpening, (try? file.size()) == snapshot.size { return }
        guard try FileSnapshot(of: snapshot.url) == snapshot else {
            throw FileSnapshot.unreadable(snapshot.url, what: "was changed after the request was built")
        }
    }
}

/// An open file for reading, closed with its last reference. All its methods block: see ``BlockingWork``.
final class ReadableFile: Sendable {
    private let files = POSIXFileSystem()
    private let file: OpenFile

    init(_ path: String) throws { file = try files.open(path, .read) }

    deinit { files.close(file) }

    /// Its current size in bytes.
    func size() throws -> Int { try files.size(of: file) }

    /// Up to `count` bytes from `offset`; fewer at the end.
    func read(from offset: Int, count: Int) throws -> [UInt8] {
        try files.read(file, from: offset, count: count)
    }
}
