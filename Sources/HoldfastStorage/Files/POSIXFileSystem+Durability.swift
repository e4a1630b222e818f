// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

// What outlives a loss of power, and room that is kept.
extension POSIXFileSystem {
    public func sync(_ file: OpenFile) throws(FileSystemError) {
        #if canImport(Darwin)
            // fsync alone hands the bytes to the device, which may reorder them; the barrier keeps the order of what comes
            // before and after, at a fraction of F_FULLFSYNC's price. Volumes that know no barrier get fsync.
            if fcntl(file.descriptor, F_BARRIERFSYNC) == 0 { return }
            try check("sync", file) { fsync(file.descriptor) }
        #else
            try check("sync", file) { fdatasync(file.descriptor) }
        #endif
    }

    public func syncDirectory(_ path: String) throws(FileSystemError) {
        let file = try openDirectory("syncDirectory", path)
        defer { close(file) }
        do {
            try check("syncDirectory", path) { fsync(file.descriptor) }
        } catch {
            // Some network file systems sync no directory: their servers write names through.
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
                throw error("allocate", file)
            }
            try truncate(file, to: size)
        #else
            while true {
                // The number is what it returns; it leaves errno alone.
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
