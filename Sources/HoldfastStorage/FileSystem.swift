// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The files of a store. Every step that can fail goes through here, so that tests can make it fail.
///
/// **Choose.** ``POSIXFileSystem``; any other is for tests.
/// **Use.** All calls block: make them on a thread that may block. Paths are absolute and used as they are.
/// **Implement.** A call does all of its work or throws: handle short reads, short writes and interruptions inside. No call follows
/// a symbolic link in the last part of a path.
public protocol FileSystem: Sendable {
    /// Holds a directory open: returns the same file system, in which every path below `path` refers to the directory that has this
    /// name now, even if it is moved later.
    ///
    /// If the directory is removed and another one takes its name, paths below it fail with `ENOENT` and never reach the other one.
    /// The directory is released with the last copy. By default nothing is held, and paths are used as they are.
    func holding(_ path: String) throws(FileSystemError) -> any FileSystem

    /// Whether an open file still has a name; true by default.
    func isNamed(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// Makes a directory with mode 0700; `EEXIST` if the name is taken.
    func createDirectory(_ path: String) throws(FileSystemError)

    /// The attributes of what is at `path`; a symbolic link is not followed.
    func attributes(of path: String) throws(FileSystemError) -> FileAttributes

    /// The names in a directory, except `.` and `..`, in no particular order.
    func list(_ path: String) throws(FileSystemError) -> [String]

    /// Opens a file; a new one gets mode 0600.
    func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile

    /// The size of an open file in bytes.
    func size(of file: OpenFile) throws(FileSystemError) -> Int

    /// Reads `count` bytes from `offset`; fewer only where the file ends.
    func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]

    /// Writes all of `bytes` at `offset`.
    func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError)

    /// Writes all of `head` and then all of `body`, without a gap, starting at `offset`; either may be empty.
    ///
    /// One system call if the system can write both at once. A write that fails may have written any prefix.
    func write(_ head: ByteChunk, _ body: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError)

    /// Reads `count` bytes from `offset` if the system has them all in memory, without waiting for the device.
    ///
    /// - Returns: all of the bytes, or nil if some are not in memory, if the file ends before them, or if the system cannot tell.
    ///   Then read with ``read(_:from:count:)``, on a thread that may block. Expect nil often, even for bytes that were read a
    ///   moment ago.
    func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]?

    /// Reads as much as fits into `buffer`, from `offset`. A body that is assembled from several reads is then copied only once.
    ///
    /// By default, copies the result of ``read(_:from:count:)`` or ``readIfCached(_:from:count:)``.
    ///
    /// - Parameters:
    ///   - file: a file that is open for reading.
    ///   - offset: of the first byte in the file.
    ///   - buffer: receives the bytes, from its beginning.
    ///   - waits: whether the call may wait for the device.
    /// - Returns: how many bytes were read, fewer than fit only at the end of the file; nil if `waits` is false and reading them
    ///   all would have to wait.
    func read(_ file: OpenFile, from offset: Int, into buffer: UnsafeMutableRawBufferPointer, waits: Bool)
        throws(FileSystemError) -> Int?

    /// Makes the file's content and size durable: they survive a power loss.
    ///
    /// The file's name needs ``syncDirectory(_:)``. Do not repeat a failed call: the system may have dropped the bytes.
    func sync(_ file: OpenFile) throws(FileSystemError)

    /// Makes the names in a directory, and what they refer to, durable.
    func syncDirectory(_ path: String) throws(FileSystemError)

    /// Makes the file at least `size` bytes long, and reserves the blocks of these bytes if the system can.
    ///
    /// Existing bytes stay as they are, new ones are zero, and a longer file is not cut. Later writes to reserved blocks do not
    /// fail for lack of space. Throws `ENOSPC` if there is no space; the size of the file is then anything between the old one and
    /// `size`.
    func allocate(_ file: OpenFile, size: Int) throws(FileSystemError)

    /// Cuts or extends an open file.
    func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError)

    /// Closes a file; do not use its number again. Never fails, since nothing could be done about it.
    func close(_ file: OpenFile)

    /// Renames a file or directory atomically, and replaces a file that has the new name.
    func rename(_ path: String, to newPath: String) throws(FileSystemError)

    /// Removes a file.
    func remove(_ path: String) throws(FileSystemError)

    /// Removes an empty directory.
    func removeDirectory(_ path: String) throws(FileSystemError)

    /// Takes the advisory lock of an open file without waiting; closing the file releases it.
    ///
    /// - Returns: false if another open file holds it, in this process or another.
    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// What the system calls its current boot, at most 64 bytes. Two equal values mean that no power was lost in between, since
    /// each boot changes it. Empty: unknown.
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
    /// For reading; the file must exist.
    case read
    /// For reading and writing; the file must exist.
    case write
    /// For reading and writing; the file must not exist.
    case create
    /// For reading and writing; the file is made if it does not exist.
    case readWrite
}

/// An open file, identified by its number.
public struct OpenFile: Sendable, Hashable {
    /// The number that the file system returned.
    public let descriptor: Int32

    /// The open file with this number; only file systems make these.
    public init(descriptor: Int32) { self.descriptor = descriptor }
}

/// What a file system reports about a file.
public struct FileAttributes: Sendable, Hashable {
    /// The kind of file; closed, because a store needs to know no more.
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
    /// Whether the user that the process runs as owns it.
    public var isOwn: Bool

    /// Attributes with these values.
    public init(kind: Kind, size: Int, permissions: UInt32, isOwn: Bool) {
        self.kind = kind
        self.size = size
        self.permissions = permissions
        self.isOwn = isOwn
    }
}

/// An operation on a file that the system refused.
public struct FileSystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The operation: the name of the ``FileSystem`` method, without its arguments.
    public let operation: String
    /// The path, or the number of the open file.
    public let path: String
    /// The system's error number.
    public let errno: Int32

    /// An error of this kind.
    public init(operation: String, path: String, errno: Int32) {
        self.operation = operation
        self.path = path
        self.errno = errno
    }

    public var description: String { "\(operation) \(path): errno \(errno)" }
}

/// The system's numbers and names that a disk store needs.
enum SystemNumber {
    /// Nothing has the name.
    static let notFound = ENOENT
    /// The name is taken.
    static let alreadyThere = EEXIST
    /// The device cannot read the bytes.
    static let damaged = EIO
    /// The device, or the user's quota on it, is full.
    static let noSpace: Set<Int32> = [ENOSPC, EDQUOT]

    /// The number of this process.
    static var processID: Int32 { getpid() }
}

extension FileSystem {
    /// Makes a directory unless the name is taken.
    func createDirectoryIfMissing(_ path: String) throws(FileSystemError) {
        do {
            try createDirectory(path)
        } catch {
            if error.errno != SystemNumber.alreadyThere { throw error }
        }
    }

    /// Removes a file; does nothing if there is none.
    func removeIfThere(_ path: String) throws(FileSystemError) {
        _ = try ifThere(try remove(path))
    }

    /// The attributes of what is at `path`; nil if there is nothing.
    func attributesIfThere(_ path: String) throws(FileSystemError) -> FileAttributes? {
        try ifThere(try attributes(of: path))
    }

    /// Opens a file for reading; nil if there is none.
    func openIfThere(_ path: String) throws(FileSystemError) -> OpenFile? {
        try ifThere(try open(path, .read))
    }

    private func ifThere<Value>(
        _ step: @autoclosure () throws(FileSystemError) -> Value
    ) throws(FileSystemError) -> Value? {
        do {
            return try step()
        } catch {
            if error.errno == SystemNumber.notFound { return nil }
            throw error
        }
    }
}

extension StoreError {
    /// The store error for a failure of the file system.
    init(disk error: FileSystemError) {
        if SystemNumber.noSpace.contains(error.errno) {
            self.init(.noSpace, "The device is full; free space on it or lower the capacity.", cause: error)
        } else {
            let message = "The file system refused an operation; see the cause, and check the directory's permissions."
            self.init(.io, message, cause: error)
        }
    }

    /// Whether the device cannot read a place any more, which says nothing about others.
    var isOfDamagedPlace: Bool { (cause as? FileSystemError)?.errno == SystemNumber.damaged }
}
