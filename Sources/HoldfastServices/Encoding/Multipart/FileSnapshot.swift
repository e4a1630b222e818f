// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Musl)
    private import Musl
#else
    private import Glibc
#endif

/// Which file lay somewhere, and in which state, so that another one or a later state is noticed.
///
/// A change that keeps file, size and time of change, within the file system's clock tick, goes unnoticed.
struct FileSnapshot: Sendable, Hashable {
    /// Where it lay.
    let url: URL
    /// Its size in bytes.
    let size: Int
    private let device: UInt64
    private let number: UInt64
    private let seconds: Int
    private let nanoseconds: Int

    /// The file that lies there now. Asks the file system, and so blocks for as long as that takes to look a name up.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` where there is no regular file.
    init(of url: URL) throws {
        var information = stat()
        guard url.isFileURL, stat(url.path, &information) == 0 else {
            throw FileSnapshot.unreadable(url, "is not there")
        }
        self = try FileSnapshot(information, url)
    }

    private init(_ information: stat, _ url: URL) throws {
        guard information.st_mode & S_IFMT == S_IFREG else {
            throw FileSnapshot.unreadable(url, "is not a regular file")
        }
        self.url = url
        size = Int(clamping: information.st_size)
        device = UInt64(truncatingIfNeeded: information.st_dev)
        number = UInt64(truncatingIfNeeded: information.st_ino)
        #if canImport(Darwin)
            seconds = information.st_mtimespec.tv_sec
            nanoseconds = information.st_mtimespec.tv_nsec
        #else
            seconds = information.st_mtim.tv_sec
            nanoseconds = information.st_mtim.tv_nsec
        #endif
    }

    /// Opens the file. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` where another file lies there now, or none, or where it was changed.
    func openFile() throws -> SnapshotReader {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw FileSnapshot.unreadable(url, errno == ENOENT ? "is not there any more" : "cannot be opened")
        }
        let reader = SnapshotReader(descriptor: descriptor, snapshot: self)
        try reader.checkUnchanged()
        return reader
    }

    fileprivate func isState(of descriptor: Int32) throws -> Bool {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw FileSnapshot.unreadable(url, "cannot be read") }
        return try FileSnapshot(information, url) == self
    }

    fileprivate static func unreadable(_ url: URL, _ what: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "The file \(url.lastPathComponent) \(what); leave it in place and as it is until the call has ended.",
            progress: .notSent
        )
    }
}

/// An open file, closed with its last reference.
final class SnapshotReader: Sendable {
    private let descriptor: Int32
    private let snapshot: FileSnapshot

    fileprivate init(descriptor: Int32, snapshot: FileSnapshot) {
        self.descriptor = descriptor
        self.snapshot = snapshot
    }

    deinit { _ = close(descriptor) }

    /// Reads `count` bytes from `offset`. Blocks.
    ///
    /// - Throws: ``ServiceError`` `.badRequest` where the file has fewer.
    func bytes(from offset: Int, count: Int) throws -> [UInt8] {
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count, let base = buffer.baseAddress {
                let got = pread(descriptor, base + filled, count - filled, off_t(clamping: offset + filled))
                if got == 0 || (got < 0 && errno != EINTR) { return }
                filled += max(0, got)
            }
        }
        guard bytes.count == count else { throw FileSnapshot.unreadable(snapshot.url, "cannot be read to its end") }
        return bytes
    }

    /// Throws ``ServiceError`` `.badRequest` where the file is not as it was. Blocks.
    func checkUnchanged() throws {
        guard try snapshot.isState(of: descriptor) else {
            throw FileSnapshot.unreadable(snapshot.url, "was changed after the request was built")
        }
    }
}
