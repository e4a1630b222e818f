// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

/// Which file lay somewhere, and in which state, so that another one or a later state is noticed.
///
/// A change that keeps file, size and time of change, to a tenth of a microsecond and within the file system's clock tick, goes
/// unnoticed.
struct FileSnapshot: Sendable, Hashable {
    /// Where it lay.
    let url: URL
    /// Its size in bytes.
    let size: Int
    private let device: UInt64
    private let number: UInt64
    private let changed: Date

    /// The file that lies there now. Asks the file system, and so blocks for as long as that takes to look a name up.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` where there is no regular file.
    init(of url: URL) throws {
        let path = url.resolvingSymlinksInPath().path
        guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw FileSnapshot.unreadable(url, what: "is not there")
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
    /// - Throws: ``ServiceError`` `.badRequest` where another file lies there now, or none, or where it was changed.
    func openFile() throws -> SnapshotReader {
        let reader: SnapshotReader
        do {
            reader = try SnapshotReader(self)
        } catch {
            throw FileSnapshot.unreadable(url, what: "is not there any more or cannot be opened")
        }
        try reader.check(isOpening: true)
        return reader
    }

    fileprivate static func unreadable(_ url: URL, what: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "The file \(url.lastPathComponent) \(what); leave it in place and as it is until the call has ended.",
            progress: .notSent
        )
    }
}

/// The file of a snapshot, open.
final class SnapshotReader: Sendable {
    private let file: ReadableFile
    private let snapshot: FileSnapshot

    fileprivate init(_ snapshot: FileSnapshot) throws {
        self.snapshot = snapshot
        file = try ReadableFile(snapshot.url.resolvingSymlinksInPath().path)
    }

    /// Reads `count` bytes from `offset`. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` where the file has fewer.
    func bytes(from offset: Int, count: Int) throws -> [UInt8] {
        let bytes = (try? file.read(from: offset, count: count)) ?? []
        guard bytes.count == count else {
            throw FileSnapshot.unreadable(snapshot.url, what: "cannot be read to its end")
        }
        return bytes
    }

    /// Throws ``ServiceError`` `.badRequest` where the file is not as it was, or another lies in its place. Blocks.
    ///
    /// One that was removed since it was opened is still here, whole if it has its size.
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
