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
/// Interrupted calls are repeated, short ones completed; files are opened with `O_CLOEXEC` and `O_NOFOLLOW`. A directory that is
/// held is a descriptor, from which `openat` and its like resolve what lies below it.
public struct POSIXFileSystem: FileSystem {
    /// The directories that are held, the last one first.
    private var held: [HeldDirectory] = []

    /// The machine's file system.
    public init() {}

    public func holding(_ path: String) throws(FileSystemError) -> any FileSystem {
        var next = self
        next.held.insert(HeldDirectory(path: path, descriptor: try openDirectory("holding", path).descriptor), at: 0)
        return next
    }

    public func createDirectory(_ path: String) throws(FileSystemError) {
        try at(path) { directory, path throws(FileSystemError) in
            try check("createDirectory", path) { mkdirat(directory, path, 0o700) }
        }
    }

    public func attributes(of path: String) throws(FileSystemError) -> FileAttributes {
        var status = stat()
        try at(path) { directory, name throws(FileSystemError) in
            try check("attributes", path) { fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
        }
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
        let descriptor = try at(path) { directory, name throws(FileSystemError) in
            try check("open", path) { openFile(directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        }
        return OpenFile(descriptor: descriptor)
    }

    public func size(of file: OpenFile) throws(FileSystemError) -> Int {
        var status = stat()
        try check("size", file) { fstat(file.descriptor, &status) }
        return Int(clamping: status.st_size)
    }

    public func isNamed(_ file: OpenFile) throws(FileSystemError) -> Bool {
        var status = stat()
        try check("isNamed", file) { fstat(file.descriptor, &status) }
        return status.st_nlink > 0
    }

    public func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) {
        try check("truncate", file) { ftruncate(file.descriptor, off_t(clamping: size)) }
    }

    public func close(_ file: OpenFile) {
        // Not repeated after EINTR: on Linux the number is free by then and may be another file's already.
        _ = systemClose(file.descriptor)
    }

    public func rename(_ path: String, to newPath: String) throws(FileSystemError) {
        try at(path) { oldDirectory, name throws(FileSystemError) in
            try at(newPath) { newDirectory, newName throws(FileSystemError) in
                try check("rename", path) { renameat(oldDirectory, name, newDirectory, newName) }
            }
        }
    }

    public func remove(_ path: String) throws(FileSystemError) {
        try at(path) { directory, name throws(FileSystemError) in
            try check("remove", path) { unlinkat(directory, name, 0) }
        }
    }

    public func removeDirectory(_ path: String) throws(FileSystemError) {
        try at(path) { directory, name throws(FileSystemError) in
            try check("removeDirectory", path) { unlinkat(directory, name, AT_REMOVEDIR) }
        }
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
        let descriptor = try at(path) { directory, name throws(FileSystemError) in
            try check(operation, path) { openFile(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
        }
        return OpenFile(descriptor: descriptor)
    }

    /// Calls `body` with the directory from which a path goes on and the rest of it: the innermost that is held, or none.
    @discardableResult
    private func at<Value>(
        _ path: String,
        _ body: (_ directory: Int32, _ name: String) throws(FileSystemError) -> Value
    ) throws(FileSystemError) -> Value {
        for directory in held {
            guard let rest = directory.rest(of: path) else { continue }
            // Kept open through the call, whatever becomes of the last copy of this value meanwhile.
            defer { withExtendedLifetime(directory) {} }
            return try body(directory.descriptor, rest)
        }
        return try body(AT_FDCWD, path)
    }

    /// The error that the system's number of the last call stands for.
    func error(_ operation: String, _ file: OpenFile) -> FileSystemError {
        FileSystemError(operation: operation, path: "\(file.descriptor)", errno: errno)
    }
}

// The methods above hide the C functions of the same names.

private func openFile(_ directory: Int32, _ path: String, _ flags: Int32) -> Int32 {
    openat(directory, path, flags, 0o600)
}

private func systemClose(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}

/// A directory that is held, and the path by which it was opened.
private final class HeldDirectory: Sendable {
    let descriptor: Int32
    private let path: String

    init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        _ = systemClose(descriptor)
    }

    /// What of a path lies below this directory; `.` for the directory itself, nil where it lies elsewhere.
    func rest(of path: String) -> String? {
        guard path.hasPrefix(self.path) else { return nil }
        let rest = path.dropFirst(self.path.count)
        if rest.isEmpty { return "." }
        return rest.first == "/" ? String(rest.dropFirst()) : nil
    }
}
