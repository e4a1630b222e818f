// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The system's cache of file contents.
enum PageCache {
    /// Writes pending changes of the files under a directory to disk, and evicts the files from the page cache.
    ///
    /// - Returns: false if the system has no such call.
    static func evict(below directory: String) throws -> Bool {
        #if canImport(Glibc) || canImport(Musl)
            for name in FileManager.default.enumerator(atPath: directory) ?? .init() {
                guard let name = name as? String else { continue }
                let file = open(directory + "/" + name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                // A directory or a deleted file has nothing to evict.
                if file < 0 { continue }
                defer { _ = close(file) }
                guard fdatasync(file) == 0 else { continue }
                if posix_fadvise(file, 0, 0, Int32(POSIX_FADV_DONTNEED)) != 0 { return false }
            }
            return true
        #else
            return false
        #endif
    }
}
