// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The files a store works on: every step that can fail goes through here, so that tests can make it fail.
///
/// **Choose.** ``POSIXFileSystem``; any other is for tests.
/// **Use.** All calls block: make them on a thread that may. Paths are absolute and are taken as they are.
/// **Implement.** A call does all of its work or throws: short reads and writes and interruptions are dealt with inside.
/// No call follows a symbolic link in the last part of a path.
public protocol FileSystem: Sendable {
    /// Holds a directory open: the same file system, for which every path below `path` leads to what lies in the directory that
    /// bears this name now, wherever it is then.
    ///
    /// When the directory is removed and another one made in its place, paths below it lead nowhere (`ENOENT`) and never into
    /// the other one. Let go of when the last copy is. By default nothing is held, and paths mean what they say.
    func holding(_ path: String) throws(FileSystemError) -> any FileSystem

    /// Whether an open file still bears a name; true by default.
    func isNamed(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// Makes a directory with mode 0700; `EEXIST` when something of this name is there.
    func createDirectory(_ path: String) throws(FileSystemError)

    /// What is at `path`, a symbolic link being described itself.
    func attributes(of path: String) throws(FileSystemError) -> FileAttributes

    /// The names in a directory but `.` and `..`, in no order.
    func list(_ path: String) throws(FileSystemError) -> [String]

    /// Opens a file; one that is made gets mode 0600.
    func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile

    /// The size of an open file in bytes.
    func size(of file: OpenFile) throws(FileSystemError) -> Int

    /// Reads `count` bytes from `offset`; fewer only where the file ends.
    func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]

    /// Writes all of `bytes` at `offset`.
    func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError)

    /// Writes all of `head` and then all of `body`, without a gap, from `offset` on; either may be empty.
    ///
    /// One request to the system where that takes both at once. A write that fails may have put down any prefix.
    func write(_ head: ByteChunk, _ body: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError)

    /// Reads `count` bytes from `offset` where the system holds them all in memory, without waiting for the device.
    ///
    /// - Returns: all of the bytes, or nil when not all of them are at hand, when the file ends before them, or when the
    ///   system cannot tell; read with ``read(_:from:count:)`` then, on a thread that may block. Nil is an everyday
    ///   answer, also for bytes that were read a moment ago.
    func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]?

    /// Reads what fits into `buffer` from `offset`: a body that is put together from several reads is copied once.
    ///
    /// By default a copy of what ``read(_:from:count:)`` or ``readIfCached(_:from:count:)`` gives.
    ///
    /// - Parameters:
    ///   - file: open for reading.
    ///   - offset: of the first byte in the file.
    ///   - buffer: takes the bytes, from its beginning.
    ///   - waits: whether the device may be waited for.
    /// - Returns: how many bytes were read, fewer than fit only where the file ends; nil where not all of them are at hand without
    ///   waiting, and `waits` is false.
    func read(_ file: OpenFile, from offset: Int, into buffer: UnsafeMutableRawBufferPointer, waits: Bool)
        throws(FileSystemError) -> Int?

    /// Makes what was written to the file, and its size, durable: after a power loss it is there.
    ///
    /// The file's name is another matter: see ``syncDirectory(_:)``. A failed call may not be repeated in the hope of
    /// better luck: the system may have dropped the bytes.
    func sync(_ file: OpenFile) throws(FileSystemError)

    /// Makes durable which names a directory holds, and what they stand for.
    func syncDirectory(_ path: String) throws(FileSystemError)

    /// Makes the file at least `size` bytes long and reserves the blocks of these bytes where the system can.
    ///
    /// Bytes that are there stay as they are, new ones are zero, and a file that is longer is not cut. Where blocks were
    /// reserved, a later write inside them does not fail for want of space. `ENOSPC` when there is none; the size of the
    /// file is then anything between the old one and `size`.
    func allocate(_ file: OpenFile, size: Int) throws(FileSystemError)

    /// Cuts or extends an open file.
    func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError)

    /// Closes a file; the number must not be used again. Never fails, since nothing could be done about it.
    func close(_ file: OpenFile)

    /// Gives a file or directory another name at once, in place of a file that bears it.
    func rename(_ path: String, to newPath: String) throws(FileSystemError)

    /// Removes a file.
    func remove(_ path: String) throws(FileSystemError)

    /// Removes an empty directory.
    func removeDirectory(_ path: String) throws(FileSystemError)

    /// Takes the advisory lock of an open file without waiting; it is held until the file is closed.
    ///
    /// - Returns: false when another open file holds it, in this process or another.
    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// What the system calls the time since it was started, at most 64 bytes: two equal answers mean that no power was
    /// lost between them, since a start of the system changes it. Empty: unknown.
    var bootIdentity: [UInt8] { get }
}

extension FileSystem {
    public func holding(_ path: String) throws(FileSystemError) -> any FileSystem { self }

    public func isNamed(_ file: OpenFile) throws(FileSystemError) -> Bool { true }

    public func read(_ file: OpenFile, from offset: Int, into buffer: UnsafeMutableRawBufferPointer, waits: Bool)
        throws(FileSystemError) -> Int?
    {
        let bytes: [UInt8]
        if waits {
            bytes = try read(file, from: offset, count: buffer.count)
        } else {
            guard let cached = try readIfCached(file, from: offset, count: buffer.count) else { return nil }
            bytes = cached
        }
        buffer.copyBytes(from: bytes)
        return bytes.count
    }
}

/// How a file is opened; closed, because every file system must know each.
public enum FileAccess: Sendable, Hashable {
    /// For reading; it must be there.
    case read
    /// For reading and writing; it must be there.
    case write
    /// For reading and writing; it must not be there.
    case create
    /// For reading and writing; it is made if it is not there.
    case readWrite
}

/// An open file, by its number.
public struct OpenFile: Sendable, Hashable {
    /// The number that the file system gave.
    public let descriptor: Int32

    /// The open file with this number; only file systems make them.
    public init(descriptor: Int32) {
        self.descriptor = descriptor
    }
}

/// What a file system says of a file.
public struct FileAttributes: Sendable, Hashable {
    /// What kind of thing bears the name; closed, because a store needs to know no more.
    public enum Kind: Sendable, Hashable {
        case file
        case directory
        case other
    }

    /// The kind.
    public var kind: Kind
    /// The size in bytes.
    public var size: Int
    /// The permission bits.
    public var permissions: UInt32
    /// Whether the user the process runs as owns it.
    public var isOwn: Bool

    /// Attributes with these values.
    public init(kind: Kind, size: Int, permissions: UInt32, isOwn: Bool) {
        self.kind = kind
        self.size = size
        self.permissions = permissions
        self.isOwn = isOwn
    }
}

/// A step on a file that the system refused.
public struct FileSystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The step: the name of the ``FileSystem`` method, without its arguments.
    public let operation: String
    /// The path, or the number of the open file.
    public let path: String
    /// The system's number for what went wrong.
    public let errno: Int32

    /// An error of this kind.
    public init(operation: String, path: String, errno: Int32) {
        self.operation = operation
        self.path = path
        self.errno = errno
    }

    public var description: String { "\(operation) \(path): errno \(errno)" }
}

/// The system's numbers and names that a disk store asks for.
enum SystemNumber {
    /// Nothing bears the name.
    static let notFound = ENOENT
    /// Something bears the name already.
    static let alreadyThere = EEXIST
    /// The device cannot give the bytes.
    static let damaged = EIO
    /// The device or the user's share of it is full.
    static let noSpace: Set<Int32> = [ENOSPC, EDQUOT]

    /// The number of this process.
    static var processID: Int32 { getpid() }
}

extension FileSystem {
    /// Makes a directory unless something bears the name.
    func createDirectoryIfMissing(_ path: String) throws(FileSystemError) {
        do {
            try createDirectory(path)
        } catch {
            if error.errno != SystemNumber.alreadyThere { throw error }
        }
    }

    /// Removes a file; that there is none is as good.
    func removeIfThere(_ path: String) throws(FileSystemError) {
        do {
            try remove(path)
        } catch {
            if error.errno != SystemNumber.notFound { throw error }
        }
    }

    /// What bears the name; nil when nothing does.
    func attributesIfThere(_ path: String) throws(FileSystemError) -> FileAttributes? {
        do {
            return try attributes(of: path)
        } catch {
            if error.errno != SystemNumber.notFound { throw error }
            return nil
        }
    }

    /// Opens a file for reading; nil when there is none.
    func openIfThere(_ path: String) throws(FileSystemError) -> OpenFile? {
        do {
            return try open(path, .read)
        } catch {
            if error.errno != SystemNumber.notFound { throw error }
            return nil
        }
    }
}

extension StoreError {
    /// What a refusal of the file system means to the caller of a store.
    init(disk error: FileSystemError) {
        if SystemNumber.noSpace.contains(error.errno) {
            self.init(.noSpace, "The device is full; free space on it or lower the capacity.", cause: error)
        } else {
            self.init(
                .io,
                "The file system refused a step; see the cause and the directory's permissions.",
                cause: error
            )
        }
    }
}
