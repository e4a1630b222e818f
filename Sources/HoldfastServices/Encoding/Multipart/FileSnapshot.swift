// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

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
        try reader.check(isOpening: true)
        return reader
    }

    fileprivate static func unreadable(_ url: URL, what: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "The file \(url.lastPathComponent) \(what); do not move or change it until the call has ended.",
            progress: .notSent
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
    func checkUnchanged() throws {
        try check(isOpening: false)
    }

    fileprivate func check(isOpening: Bool) throws {
        let isRemoved = (try? snapshot.url.checkResourceIsReachable()) != true
        if isRemoved, !isOpening, (try? file.size()) == snapshot.size { return }
        guard try FileSnapshot(of: snapshot.url) == snapshot else {
            throw FileSnapshot.unreadable(snapshot.url, what: "was changed after the request was built")
        }
    }
}
