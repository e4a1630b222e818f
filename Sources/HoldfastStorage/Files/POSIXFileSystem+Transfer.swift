// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

// Bytes that go in and out of an open file.
extension POSIXFileSystem {
    public func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        var failure: FileSystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: max(0, count)) { buffer, filled in
            do throws(FileSystemError) {
                let room = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: max(0, count))
                filled = try readAll(file, from: offset, into: room)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    public func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        guard count > 0 else { return [] }
        var failure: FileSystemError?
        var isCached = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            do throws(FileSystemError) {
                let room = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
                isCached = try readNow(file, from: offset, into: room)
                if isCached { filled = count }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return isCached ? bytes : nil
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

    /// - Returns: how many bytes there were.
    @inline(__always)
    private func readAll(
        _ file: OpenFile,
        from offset: Int,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(FileSystemError) -> Int {
        var filled = 0
        while filled < buffer.count, let base = buffer.baseAddress {
            let got = pread(file.descriptor, base + filled, buffer.count - filled, place(offset, filled))
            if got > 0 {
                filled += got
            } else if got == 0 {
                break
            } else if errno != EINTR {
                throw error("read", file)
            }
        }
        return filled
    }

    /// - Returns: whether all bytes were at hand.
    @inline(__always)
    private func readNow(
        _ file: OpenFile,
        from offset: Int,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(FileSystemError) -> Bool {
        #if canImport(Glibc) && (arch(x86_64) || arch(arm64))
            var part = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
            let got = systemReadNow(file.descriptor, &part, 1, place(offset, 0), readWithoutWaiting)
            // A short count: a part is cached, or the file ends there.
            if got >= 0 { return got == buffer.count }
            switch errno {
            // Not cached; interrupted; the file system or the kernel cannot tell. Asked anew each time: the answer is one of
            // this file's file system, and nothing is remembered for others.
            case EAGAIN, EINTR, EOPNOTSUPP, ENOSYS, EINVAL: return false
            default: throw error("readIfCached", file)
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
                let written = try gather(first, second, to: file, at: offset)
                // What a short count left over goes the plain way: rare, and one buffer at a time is simple.
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
        _ second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int
    ) throws(FileSystemError) -> Int {
        // Nothing is gathered where there is only one.
        guard !first.isEmpty, !second.isEmpty else { return 0 }
        while true {
            let written = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { parts in
                // The system only reads from where these point to.
                parts[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count)
                parts[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
                return pwritev(file.descriptor, parts.baseAddress, 2, place(offset, 0))
            }
            if written >= 0 { return min(written, first.count + second.count) }
            if errno != EINTR { throw error("write", file) }
        }
    }

    /// Writes all of `buffer`, whose first byte belongs `skipped` bytes behind `offset`.
    private func write(
        _ buffer: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int,
        after skipped: Int
    ) throws(FileSystemError) {
        var written = 0
        while written < buffer.count, let base = buffer.baseAddress {
            let count = buffer.count - written
            let got = pwrite(file.descriptor, base + written, count, place(offset, skipped + written))
            if got > 0 {
                written += got
            } else if got == 0 {
                throw FileSystemError(operation: "write", path: "\(file.descriptor)", errno: EIO)
            } else if errno != EINTR {
                throw error("write", file)
            }
        }
    }

    /// An offset as the system counts; one out of range becomes one that it refuses.
    private func place(_ offset: Int, _ done: Int) -> off_t {
        let (place, overflow) = offset.addingReportingOverflow(done)
        return overflow ? -1 : off_t(clamping: place)
    }
}

#if canImport(Glibc) && (arch(x86_64) || arch(arm64))
    /// `RWF_NOWAIT` of Linux: fail with `EAGAIN` rather than wait for the device.
    private let readWithoutWaiting: Int32 = 0x8

    // The header of glibc shows `preadv2` only to those who define _GNU_SOURCE, which Swift's module does not, and a
    // variadic `syscall` cannot be called. The name is bound with Swift's calling convention, which fits on these two
    // processors: up to six (x86-64) or eight (arm64) integer and pointer arguments and one integer result lie in the same
    // registers as in C; the extra registers of Swift's convention belong to `self`, errors and async contexts, which a
    // plain function that does not throw has none of; and C preserves every register that Swift's convention wants kept.
    // `off_t` has 64 bits on both, as `preadv2` expects. In glibc since 2.26.
    @_silgen_name("preadv2")
    private func systemReadNow(
        _ descriptor: Int32,
        _ parts: UnsafePointer<iovec>,
        _ count: Int32,
        _ offset: off_t,
        _ flags: Int32
    ) -> Int
#endif
