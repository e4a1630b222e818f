// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import Foundation
package import HoldfastStorage
private import Synchronization

/// The bytes of a file, chunk by chunk: all of them as they were when the snapshot was taken, or an error.
///
/// Reads on threads for blocking work, because a file may be on a slow disk. The file is open from the first chunk to the last,
/// and closed when the source is cancelled or released.
package final class FileSource: ByteSource {
    private struct State {
        var file: SnapshotReader?
        var offset = 0
    }

    private static let chunkSize = 256 << 10
    private let snapshot: FileSnapshot
    private let handoff = ChunkHandoff()
    private let state: Mutex<State>

    package convenience init(_ snapshot: FileSnapshot) { self.init(snapshot, file: nil) }

    private init(_ snapshot: FileSnapshot, file: SnapshotReader?) {
        self.snapshot = snapshot
        state = Mutex(State(file: file))
    }

    /// The length in bytes.
    package var length: Int { snapshot.size }

    /// Opens the file that is there now, so that whether it can be read is known before anything is sent.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent`.
    package static func open(_ url: URL) async throws -> FileSource {
        try await BlockingWork.run {
            let snapshot = try FileSnapshot(of: url)
            return FileSource(snapshot, file: try SnapshotReader(snapshot))
        }
    }

    package func next() async throws -> ByteChunk? {
        try await withTaskCancellationHandler {
            try await handoff.pull { BlockingWork.enqueue { self.deliver() } }
        } onCancel: {
            cancel()
        }
    }

    package func cancel() {
        handoff.cancel()
        // Closes the file, once a read in progress has released it too.
        let file = state.withLock { $0.file.take() }
        withExtendedLifetime(file) {}
    }

    private func deliver() {
        do {
            if let chunk = try read() { handoff.deliver(chunk) } else { handoff.end(nil) }
        } catch {
            handoff.end(error)
        }
    }

    /// The next chunk; never called twice at a time, because a source has one reader.
    private func read() throws -> ByteChunk? {
        let (opened, offset) = state.withLock { ($0.file, $0.offset) }
        // The end was reached, and the file closed then.
        if opened == nil, offset > 0, offset == snapshot.size { return nil }
        let file = try opened ?? SnapshotReader(snapshot)
        let count = min(FileSource.chunkSize, snapshot.size - offset)
        let bytes = try file.bytes(from: offset, count: count)
        let isLast = offset + count == snapshot.size
        if isLast { try file.checkUnchanged() }
        state.withLock { state in
            state.offset = offset + count
            state.file = isLast || handoff.isOver ? nil : file
        }
        return bytes.isEmpty ? nil : ByteChunk(bytes)
    }
}

/// Identifies a file and its state, to notice if it is replaced or changed.
///
/// A change is missed if file, size and modification time stay the same, to a tenth of a microsecond and within the file
/// system's clock tick.
package struct FileSnapshot: Sendable, Hashable {
    /// Where the file is.
    package let url: URL
    /// Its size in bytes.
    package let size: Int
    private let device: UInt64
    private let number: UInt64
    private let changed: Date

    /// The file that is there now. Blocks while it asks the file system.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` if there is no regular file.
    package init(of url: URL) throws {
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

    static func unreadable(_ url: URL, what: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "The file \(url.lastPathComponent) \(what); do not move or change it until the call has ended and its content was "
                + "read.",
            progress: .notSent
        )
    }
}

/// The opened file of a snapshot.
private final class SnapshotReader: Sendable {
    private let files = POSIXFileSystem()
    private let file: OpenFile
    private let snapshot: FileSnapshot

    /// Opens the file. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` if the file was replaced, removed or changed.
    init(_ snapshot: FileSnapshot) throws {
        self.snapshot = snapshot
        do {
            file = try files.open(snapshot.url.resolvingSymlinksInPath().path, .read)
        } catch {
            throw FileSnapshot.unreadable(snapshot.url, what: "no longer exists or cannot be opened")
        }
        try checkUnchanged(isOpening: true)
    }

    deinit { files.close(file) }

    /// Reads `count` bytes from `offset`. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` if the file has fewer.
    func bytes(from offset: Int, count: Int) throws -> [UInt8] {
        let bytes = (try? files.read(file, from: offset, count: count)) ?? []
        guard bytes.count == count else {
            throw FileSnapshot.unreadable(snapshot.url, what: "cannot be read to its end")
        }
        return bytes
    }

    /// Throws ``ServiceError`` `.badRequest` if the file was changed or replaced. Blocks.
    ///
    /// A file that was removed after it was opened can still be read, and is complete if it has its size.
    func checkUnchanged(isOpening: Bool = false) throws {
        let isRemoved = (try? snapshot.url.checkResourceIsReachable()) != true
        if isRemoved, !isOpening, (try? files.size(of: file)) == snapshot.size { return }
        guard try FileSnapshot(of: snapshot.url) == snapshot else {
            throw FileSnapshot.unreadable(snapshot.url, what: "was changed meanwhile")
        }
    }
}
