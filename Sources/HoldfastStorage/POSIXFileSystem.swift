// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The file system of the machine, through POSIX calls.
///
/// Interrupted calls are repeated and short ones completed. Files are opened with `O_CLOEXEC` and `O_NOFOLLOW`. A held directory is
/// a descriptor; `openat` and similar calls resolve paths below it.
public struct POSIXFileSystem: FileSystem {
    /// The directories that are held, the latest first.
    private var held: [HeldDirectory] = []

    /// The machine's file system.
    public init() {}

    public func holding(_ path: String) throws(FileSystemError) -> any FileSystem {
        var next = self
        next.held.insert(
            HeldDirectory(path: path, descriptor: try openDirectory("holding", path: path).descriptor),
            at: 0
        )
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
        let descriptor = try openDirectory("list", path: path).descriptor
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
                // Only errno tells the end from an error.
                if errno != 0 { throw FileSystemError(operation: "list", path: path, errno: errno) }
                return names
            }
            let name = Self.name(of: item)
            if name != ".", name != ".." { names.append(name) }
        }
    }

    /// The name of a directory entry, read in place.
    ///
    /// An entry is as long as its name needs. Its declared type has room for 255 bytes, and a copy of it reads beyond the system's
    /// buffer, where there may be no memory.
    static func name(of entry: UnsafePointer<dirent>) -> String {
        let name = UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
        return String(cString: name.assumingMemoryBound(to: CChar.self))
    }

    public func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile {
        let flags =
            switch access {
            case .read: O_RDONLY
            case .write: O_RDWR
            case .create: O_RDWR | O_CREAT | O_EXCL
            case .readWrite: O_RDWR | O_CREAT
            }
        // O_NONBLOCK: a pipe in place of a file must not block the thread; it does not affect files.
        let descriptor = try at(path) { directory, name throws(FileSystemError) in
            try check("open", path) {
                openFile(directory, path: name, flags: flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            }
        }
        guard !SpareDescriptors.contains(descriptor) else {
            _ = systemClose(descriptor)
            // This call made it, and nobody else would remove it.
            if access == .create { try? remove(path) }
            throw FileSystemError(operation: "open", path: path, errno: SpareDescriptors.errorNumber)
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
        // Not repeated after EINTR: on Linux the descriptor is already free then, and may belong to another file.
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
    /// Repeats a call until it is not interrupted.
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

    func openDirectory(_ operation: String, path: String) throws(FileSystemError) -> OpenFile {
        let descriptor = try at(path) { directory, name throws(FileSystemError) in
            try check(operation, path) {
                openFile(directory, path: name, flags: O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
            }
        }
        return OpenFile(descriptor: descriptor)
    }

    /// Calls `body` with the innermost held directory that contains a path, if any, and the rest of the path.
    @discardableResult
    private func at<Value>(
        _ path: String,
        body: (_ directory: Int32, _ name: String) throws(FileSystemError) -> Value
    ) throws(FileSystemError) -> Value {
        for directory in held {
            guard let rest = directory.rest(of: path) else { continue }
            // Keeps the directory open during the call, even if the last copy of this value goes away meanwhile.
            defer { withExtendedLifetime(directory) {} }
            return try body(directory.descriptor, rest)
        }
        return try body(AT_FDCWD, path)
    }

    /// The error for the errno of the last call.
    func error(_ operation: String, file: OpenFile) -> FileSystemError {
        FileSystemError(operation: operation, path: "\(file.descriptor)", errno: errno)
    }
}

// The methods above hide the C functions of the same names.

private func openFile(_ directory: Int32, path: String, flags: Int32) -> Int32 {
    openat(directory, path, flags, 0o600)
}

private func systemClose(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}

/// A held directory, and the path that it was opened by.
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

    /// The part of a path below this directory; `.` for the directory itself, nil if the path is elsewhere.
    func rest(of path: String) -> String? {
        guard path.hasPrefix(self.path) else { return nil }
        let rest = path.dropFirst(self.path.count)
        if rest.isEmpty { return "." }
        return rest.first == "/" ? String(rest.dropFirst()) : nil
    }
}

// Reading from and writing to an open file.
extension POSIXFileSystem {
    public func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        try array(max(0, count)) { room throws(FileSystemError) in try readAll(file, from: offset, into: room) } ?? []
    }

    public func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        guard count > 0 else { return [] }
        return try array(count) { room throws(FileSystemError) in
            try readNow(file, from: offset, into: room) ? count : nil
        }
    }

    /// An array that `fill` fills, returning how many bytes it has then; nil if `fill` returns nil.
    @inline(__always)
    private func array(
        _ capacity: Int,
        fill: (UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Int?
    ) throws(FileSystemError) -> [UInt8]? {
        var failure: FileSystemError?
        var isThere = true
        let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, filled in
            do throws(FileSystemError) {
                let count = try fill(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: capacity))
                (filled, isThere) = (count ?? 0, count != nil)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return isThere ? bytes : nil
    }

    public func read(
        _ file: OpenFile,
        from offset: Int,
        into buffer: UnsafeMutableRawBufferPointer,
        waits: Bool
    ) throws(FileSystemError) -> Int? {
        if waits { return try readAll(file, from: offset, into: buffer) }
        if !buffer.isEmpty, !(try readNow(file, from: offset, into: buffer)) { return nil }
        return buffer.count
    }

    /// - Returns: how many bytes were read.
    @inline(__always)
    private func readAll(
        _ file: OpenFile,
        from offset: Int,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(FileSystemError) -> Int {
        var filled = 0
        while filled < buffer.count, let base = buffer.baseAddress {
            let got = pread(file.descriptor, base + filled, buffer.count - filled, place(offset, done: filled))
            if got > 0 {
                filled += got
            } else if got == 0 {
                break
            } else if errno != EINTR {
                throw error("read", file: file)
            }
        }
        return filled
    }

    /// - Returns: whether all bytes were in memory.
    @inline(__always)
    private func readNow(
        _ file: OpenFile,
        from offset: Int,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(FileSystemError) -> Bool {
        #if canImport(Glibc) && (arch(x86_64) || arch(arm64))
            var part = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
            let got = systemReadNow(
                file.descriptor,
                parts: &part,
                count: 1,
                offset: place(offset, done: 0),
                flags: readWithoutWaiting
            )
            // A short count: only a part is cached, or the file ends there.
            if got >= 0 { return got == buffer.count }
            switch errno {
            // Not cached; interrupted; not supported by the file system or the kernel. Asked again each time: the answer depends on
            // this file's file system, so it is not remembered for others.
            case EAGAIN, EINTR, EOPNOTSUPP, ENOSYS, EINVAL: return false
            default: throw error("readIfCached", file: file)
            }
        #else
            return false
        #endif
    }

    public func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try bytes.withUnsafeBytes { buffer throws(FileSystemError) in
            try write(buffer, to: file, at: offset, after: 0)
        }
    }

    public func write(
        _ head: ByteChunk,
        _ body: ByteChunk,
        to file: OpenFile,
        at offset: Int
    ) throws(FileSystemError) {
        try head.withUnsafeBytes { first throws(FileSystemError) in
            try body.withUnsafeBytes { second throws(FileSystemError) in
                let written = try gather(first, second: second, to: file, at: offset)
                // The rest after a short write goes one buffer at a time: it is rare, and this is simple.
                let inFirst = min(written, first.count)
                let rest = UnsafeRawBufferPointer(rebasing: first[inFirst...])
                try write(rest, to: file, at: offset, after: inFirst)
                let inSecond = written - inFirst
                let last = UnsafeRawBufferPointer(rebasing: second[inSecond...])
                try write(last, to: file, at: offset, after: first.count + inSecond)
            }
        }
    }

    /// Writes both with one call.
    ///
    /// - Returns: how many bytes were written: all, or fewer.
    private func gather(
        _ first: UnsafeRawBufferPointer,
        second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int
    ) throws(FileSystemError) -> Int {
        // With only one buffer there is nothing to gather.
        guard !first.isEmpty, !second.isEmpty else { return 0 }
        while true {
            let written = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { parts in
                // The system only reads through these pointers.
                parts[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count)
                parts[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
                return pwritev(file.descriptor, parts.baseAddress, 2, place(offset, done: 0))
            }
            if written >= 0 { return min(written, first.count + second.count) }
            if errno != EINTR { throw error("write", file: file) }
        }
    }

    /// Writes all of `buffer`, whose first byte belongs at `offset` plus `skipped`.
    private func write(
        _ buffer: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int,
        after skipped: Int
    ) throws(FileSystemError) {
        var written = 0
        while written < buffer.count, let base = buffer.baseAddress {
            let count = buffer.count - written
            let got = pwrite(file.descriptor, base + written, count, place(offset, done: skipped + written))
            if got > 0 {
                written += got
            } else if got == 0 {
                throw FileSystemError(operation: "write", path: "\(file.descriptor)", errno: EIO)
            } else if errno != EINTR {
                throw error("write", file: file)
            }
        }
    }

    /// An offset as the system's type; one that is out of range becomes one that the system refuses.
    private func place(_ offset: Int, done: Int) -> off_t {
        let (place, overflow) = offset.addingReportingOverflow(done)
        return overflow ? -1 : off_t(clamping: place)
    }
}

#if canImport(Glibc) && (arch(x86_64) || arch(arm64))
    /// `RWF_NOWAIT` of Linux: fail with `EAGAIN` rather than wait for the device.
    private let readWithoutWaiting: Int32 = 0x8

    // glibc's header declares `preadv2` only if _GNU_SOURCE is defined, which Swift's module does not do, and the variadic
    // `syscall` cannot be called. So the name is bound with Swift's calling convention, which fits on these two processors: up to
    // six (x86-64) or eight (arm64) integer and pointer arguments and one integer result are in the same registers as in C. The
    // extra registers of Swift's convention are for `self`, errors and async contexts, which a plain function that does not throw
    // does not have. C preserves every register that Swift's convention preserves. `off_t` has 64 bits on both, as `preadv2`
    // expects. In glibc since 2.26.
    @_silgen_name("preadv2")
    private func systemReadNow(
        _ descriptor: Int32,
        parts: UnsafePointer<iovec>,
        count: Int32,
        offset: off_t,
        flags: Int32
    ) -> Int
#endif

// Durability and reserved space.
extension POSIXFileSystem {
    public func sync(_ file: OpenFile) throws(FileSystemError) {
        #if canImport(Darwin)
            // fsync alone passes the bytes to the device, which may reorder them. The barrier keeps the order at a fraction of the
            // cost of F_FULLFSYNC. Volumes without barriers get fsync.
            if fcntl(file.descriptor, F_BARRIERFSYNC) == 0 { return }
            try check("sync", file) { fsync(file.descriptor) }
        #else
            try check("sync", file) { fdatasync(file.descriptor) }
        #endif
    }

    public func syncDirectory(_ path: String) throws(FileSystemError) {
        let file = try openDirectory("syncDirectory", path: path)
        defer { close(file) }
        do {
            try check("syncDirectory", path) { fsync(file.descriptor) }
        } catch {
            // Some network file systems do not sync directories: their servers write names through.
            if error.errno != EINVAL { throw error }
        }
    }

    public func allocate(_ file: OpenFile, size: Int) throws(FileSystemError) {
        guard size > 0 else { return }
        #if canImport(Darwin)
            let present = try self.size(of: file)
            guard present < size else { return }
            var wish = fstore_t()
            wish.fst_flags = UInt32(F_ALLOCATEALL)
            wish.fst_posmode = F_PEOFPOSMODE
            wish.fst_length = off_t(clamping: size - present)
            if fcntl(file.descriptor, F_PREALLOCATE, &wish) < 0, errno == ENOSPC {
                throw error("allocate", file: file)
            }
            try truncate(file, to: size)
        #else
            while true {
                // The return value is the error number; errno is not set.
                let number = posix_fallocate(file.descriptor, 0, off_t(clamping: size))
                switch number {
                case 0: return
                case EINTR: continue
                case EOPNOTSUPP, ENOSYS, EINVAL:
                    if try self.size(of: file) < size { try truncate(file, to: size) }
                    return
                default:
                    throw FileSystemError(operation: "allocate", path: "\(file.descriptor)", errno: number)
                }
            }
        #endif
    }

    public var bootIdentity: [UInt8] {
        #if canImport(Darwin)
            var bytes = [UInt8](repeating: 0, count: 64)
            var count = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return [] }
            return Array(bytes.prefix(count).prefix { $0 != 0 })
        #else
            guard let file = try? open("/proc/sys/kernel/random/boot_id", .read) else { return [] }
            defer { close(file) }
            let bytes = (try? read(file, from: 0, count: 64)) ?? []
            return Array(bytes.prefix { $0 > 0x20 })
        #endif
    }
}
