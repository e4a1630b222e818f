// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// The last descriptors that this process may open. They are left to the system: libdispatch on Linux looks at its threads through
/// files, and ends a process that cannot open one.
package enum SpareDescriptors {
    private static let count = 32
    /// The error number of a call that would take one of them.
    package static let errorNumber = EMFILE

    #if canImport(Glibc)
        private static let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let files = RLIMIT_NOFILE
    #endif

    /// Whether a new descriptor is one of them; the system assigns the lowest free number (POSIX, "File Descriptor Allocation").
    static func contains(_ descriptor: Int32) -> Bool {
        var limit = rlimit()
        guard getrlimit(files, &limit) == 0 else { return false }
        return contains(descriptor, limit: Int(clamping: limit.rlim_cur))
    }

    /// The same for a process that may open `limit` files: of a few, at most a quarter is left.
    static func contains(_ descriptor: Int32, limit: Int) -> Bool {
        Int(descriptor) >= limit - min(count, limit / 4)
    }

    /// Whether the next descriptor would be one of them.
    package static var areNext: Bool {
        let next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
        guard next >= 0 else { return errno == EMFILE }
        defer { _ = close(next) }
        return contains(next)
    }
}
