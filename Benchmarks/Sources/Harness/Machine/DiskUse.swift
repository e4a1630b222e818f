// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// How many bytes of the disk a directory's files take, those already unlinked but still open in this process included.
public enum DiskUse {
    /// The sum of the blocks of all regular files beneath `directory`, each counted once.
    ///
    /// Walks the directory while others change it: a file that goes meanwhile may be missed, none is counted twice.
    /// Unlinked files are seen only where the system lists open files (Linux).
    public static func bytes(beneath directory: String) -> Int {
        var seen: Set<FileIdentity> = []
        var total = 0
        func count(_ status: stat) {
            guard status.st_mode & S_IFMT == S_IFREG else { return }
            if seen.insert(FileIdentity(device: UInt64(status.st_dev), number: UInt64(status.st_ino))).inserted {
                total += Int(status.st_blocks) * 512
            }
        }
        // Open files first: one that is unlinked between the two walks is then still counted.
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
