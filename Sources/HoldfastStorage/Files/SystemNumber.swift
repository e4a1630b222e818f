// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

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
