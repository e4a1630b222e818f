// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Synchronization

/// The real files; every read waits for the device, is counted, and can be held up, as can syncs of files.
final class HangingFiles: FileSystem {
    /// How many reads have begun.
    let reads = CountWatch()
    /// How many syncs of files have begun.
    let syncs = CountWatch()
    private let hangs = Mutex(false)
    private let hangsSyncs = Mutex(false)
    /// Called with the path of each file that was opened for reading.
    let afterOpening = Mutex<(@Sendable (String) -> Void)?>(nil)
    private let gate = DispatchSemaphore(value: 0)
    private let real = POSIXFileSystem()

    /// Holds up the next reads.
    func hang() {
        hangs.withLock { $0 = true }
    }

    /// Holds up the next syncs.
    func hangSyncs() {
        hangsSyncs.withLock { $0 = true }
    }

    /// Lets go on the one step that is held up, and the next ones.
    func goOn() {
        hangs.withLock { $0 = false }
        hangsSyncs.withLock { $0 = false }
        gate.signal()
    }

    func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        let hangs = hangs.withLock { $0 }
        reads.increment()
        if hangs { gate.wait() }
        return try real.read(file, from: offset, count: count)
    }

    func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        // All reads take the way on which they can be held up.
        nil
    }

    func createDirectory(_ path: String) throws(FileSystemError) { try real.createDirectory(path) }
    func attributes(of path: String) throws(FileSystemError) -> FileAttributes { try real.attributes(of: path) }
    func list(_ path: String) throws(FileSystemError) -> [String] { try real.list(path) }

    func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile {
        let file = try real.open(path, access)
        if access == .read { afterOpening.withLock { $0 }?(path) }
        return file
    }

    func size(of file: OpenFile) throws(FileSystemError) -> Int { try real.size(of: file) }

    func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try real.write(bytes, to: file, at: offset)
    }

    func write(_ head: ByteChunk, _ body: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try real.write(head, body, to: file, at: offset)
    }

    func sync(_ file: OpenFile) throws(FileSystemError) {
        let hangs = hangsSyncs.withLock { $0 }
        syncs.increment()
        if hangs { gate.wait() }
        try real.sync(file)
    }

    func syncDirectory(_ path: String) throws(FileSystemError) { try real.syncDirectory(path) }
    func allocate(_ file: OpenFile, size: Int) throws(FileSystemError) { try real.allocate(file, size: size) }
    func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) { try real.truncate(file, to: size) }
    func close(_ file: OpenFile) { real.close(file) }
    func rename(_ path: String, to newPath: String) throws(FileSystemError) { try real.rename(path, to: newPath) }
    func remove(_ path: String) throws(FileSystemError) { try real.remove(path) }
    func removeDirectory(_ path: String) throws(FileSystemError) { try real.removeDirectory(path) }
    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool { try real.lock(file) }
    var bootIdentity: [UInt8] { real.bootIdentity }
}
