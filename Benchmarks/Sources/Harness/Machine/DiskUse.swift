// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The disk usage of a directory's files, including unlinked files that this process still has open.
public enum DiskUse {
    /// The sum of the blocks of all regular files below `directory`, each counted once.
    ///
    /// The directory may change during the walk: a file that is deleted meanwhile may be missed, but none is counted twice.
    /// Unlinked files are found only if the system lists open files (Linux).
    public static func bytes(below directory: String) -> Int {
        var seen: Set<FileIdentity> = []
        var total = 0
        func count(_ status: stat) {
            guard status.st_mode & S_IFMT == S_IFREG else { return }
            if seen.insert(FileIdentity(device: UInt64(status.st_dev), number: UInt64(status.st_ino))).inserted {
                total += Int(status.st_blocks) * 512
            }
        }
        // Open files first, so that a file that is unlinked between the two walks is still counted.
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            guard let number = Int32(name),
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"),
                target.hasPrefix(directory + "/")
            else { continue }
            var status = stat()
            if fstat(number, &status) == 0 { count(status) }
        }
        for name in FileManager.default.enumerator(atPath: directory) ?? .init() {
            guard let name = name as? String else { continue }
            var status = stat()
            if lstat(directory + "/" + name, &status) == 0 { count(status) }
        }
        return total
    }

    private struct FileIdentity: Hashable {
        let device: UInt64
        let number: UInt64
    }
}
