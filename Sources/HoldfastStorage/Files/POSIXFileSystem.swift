// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The file system of the machine, by POSIX calls.
///
/// Interrupted calls are repeated, short ones completed; files are opened with `O_CLOEXEC` and `O_NOFOLLOW`.
public struct POSIXFileSystem: FileSystem {
    /// The machine's file system.
    public init() {}

    public func createDirectory(_ path: String) throws(FileSystemError) {
        try check("createDirectory", path) { mkdir(path, 0o700) }
    }

    public func attributes(of path: String) throws(FileSystemError) -> FileAttributes {
        var status = stat()
        try check("attributes", path) { lstat(path, &status) }
        let kind: FileAttributes.Kind
        switch status.st_mode & S_IFMT {
        case S_IFREG: kind = .file
        case S_IFDIR: kind = .directory
        default: kind = .other
        }
        return FileAttributes(
            kind: kind,
            size: Int(clamping: status.st_size),
            permissions: UInt32(status.st_mode) & 0o7777,
            isOwn: status.st_uid == geteuid()
        )
    }

    public func list(_ path: String) throws(FileSystemError) -> [String] {
        let descriptor = try openDirectory("list", path).descriptor
        guard let directory = fdopendir(descriptor) else {
            let number = errno
            _ = systemClose(descriptor)
            throw FileSystemError(operation: "list", path: path, errno: number)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let item = readdir(directory) else {
                // The end and an error look alike but for this number.
                if errno != 0 { throw FileSystemError(operation: "list", path: path, errno: errno) }
                return names
            }
            let name = withUnsafeBytes(of: item.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    public func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile {
        let flags =
            switch access {
            case .read: O_RDONLY
            case .create: O_RDWR | O_CREAT | O_EXCL
            case .readWrite: O_RDWR | O_CREAT
            }
        // O_NONBLOCK: a pipe put in the place of a file must not hold the thread; files take no notice of it.
        let descriptor = try check("open", path) {
            openFile(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        }
        return OpenFile(descriptor: descriptor)
    }

    public func size(of file: OpenFile) throws(FileSystemError) -> Int {
        var status = stat()
        try check("size", file) { fstat(file.descriptor, &status) }
        return Int(clamping: status.st_size)
    }

    public func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) {
        try check("truncate", file) { ftruncate(file.descriptor, off_t(clamping: size)) }
    }

    public func close(_ file: OpenFile) {
        // Not repeated after EINTR: on Linux the number is free by then and may be another file's already.
        _ = systemClose(file.descriptor)
    }

    public func rename(_ path: String, to newPath: String) throws(FileSystemError) {
        try check("rename", path) { systemRename(path, newPath) }
    }

    public func remove(_ path: String) throws(FileSystemError) {
        try check("remove", path) { unlink(path) }
    }

    public func removeDirectory(_ path: String) throws(FileSystemError) {
        try check("removeDirectory", path) { rmdir(path) }
    }

    public func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        do {
            try check("lock", file) { flock(file.descriptor, LOCK_EX | LOCK_NB) }
            return true
        } catch {
            if error.errno == EWOULDBLOCK { return false }
            throw error
        }
    }
}

extension POSIXFileSystem {
    /// Makes a call until it is not interrupted.
    @discardableResult
    func check(_ operation: String, _ path: String, _ call: () -> Int32) throws(FileSystemError) -> Int32 {
        while true {
            let result = call()
            if result >= 0 { return result }
            if errno != EINTR { throw FileSystemError(operation: operation, path: path, errno: errno) }
        }
    }

    @discardableResult
    func check(_ operation: String, _ file: OpenFile, _ call: () -> Int32) throws(FileSystemError) -> Int32 {
        try check(operation, "\(file.descriptor)", call)
    }

    func openDirectory(_ operation: String, _ path: String) throws(FileSystemError) -> OpenFile {
        let descriptor = try check(operation, path) {
            openFile(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        }
        return OpenFile(descriptor: descriptor)
    }

    /// The error that the system's number of the last call stands for.
    func error(_ operation: String, _ file: OpenFile) -> FileSystemError {
        FileSystemError(operation: operation, path: "\(file.descriptor)", errno: errno)
    }
}

// The methods above hide the C functions of the same names.

private func openFile(_ path: String, _ flags: Int32) -> Int32 {
    open(path, flags, 0o600)
}

private func systemClose(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}

private func systemRename(_ path: String, _ newPath: String) -> Int32 {
    rename(path, newPath)
}
