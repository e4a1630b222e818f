// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Glibc)
    private import Glibc
#elseif canImport(Musl)
    private import Musl
#endif

/// An open file of requests, read or written from the front to the back; closed when it goes.
///
/// Unlike a store's files it may be a link or a pipe: the user named it.
struct TraceFile: ~Copyable {
    private let descriptor: Int32
    private let path: String

    /// Opens a file to read it.
    init(reading path: String) throws(TraceError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        self.path = path
        if descriptor < 0 { throw failure("open", .unreadable, "cannot be opened; check the path and its permissions") }
    }

    /// Makes a file, or empties the one that is there.
    init(writing path: String) throws(TraceError) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        self.path = path
        if descriptor < 0 {
            throw failure("open", .unwritable, "cannot be made; check the directory and its permissions")
        }
    }

    deinit {
        if descriptor >= 0 { _ = close(descriptor) }
    }

    /// Bytes of the file; nil for a pipe and the like, which do not know.
    var size: Int? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(clamping: status.st_size)
    }

    /// The next bytes, `count` unless the file ends before.
    func read(_ count: Int) throws(TraceError) -> [UInt8] {
        var outcome = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count, let base = buffer.baseAddress {
                outcome = systemRead(descriptor, base + filled, count - filled)
                if outcome == 0 || outcome < 0 && errno != EINTR { return }
                filled += max(0, outcome)
            }
        }
        if outcome < 0 { throw failure("read", .unreadable, "cannot be read; name a file, not a directory") }
        return bytes
    }

    /// Writes all bytes behind those before.
    func write(_ bytes: [UInt8]) throws(TraceError) {
        var done = 0
        while done < bytes.count {
            let outcome = bytes.withUnsafeBytes { buffer in
                buffer.baseAddress.map { systemWrite(descriptor, $0 + done, bytes.count - done) } ?? 0
            }
            if outcome > 0 {
                done += outcome
            } else if outcome == 0 || errno != EINTR {
                throw failure("write", .unwritable, "cannot be written; see whether the device is full")
            }
        }
    }

    /// Gives a file another name, in place of one that bears it.
    static func move(_ path: String, to newPath: String) throws(TraceError) {
        if rename(path, newPath) == 0 { return }
        let cause = TraceError.SystemFailure(call: "rename", errno: errno)
        throw TraceError(.unwritable, "\(newPath) cannot be replaced; is it a directory?", cause: cause)
    }

    /// Removes a file if it is there.
    static func remove(_ path: String) {
        _ = unlink(path)
    }

    private borrowing func failure(_ call: String, _ code: TraceError.Code, _ text: String) -> TraceError {
        TraceError(code, "\(path) \(text).", cause: TraceError.SystemFailure(call: call, errno: errno))
    }
}

// The methods above hide the C functions of the same names.

private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int {
    read(descriptor, bytes, count)
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}
