// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// A directory for the files of one run, which is removed afterwards.
public struct ScratchDirectory: Sendable {
    /// Its absolute path.
    public let path: String

    /// Creates a directory with a new name.
    ///
    /// - Parameter parent: the parent directory; nil: that of the current directory, so that a checkout stays clean.
    /// - Throws: the system's error if it cannot be created.
    public init(in parent: String?, prefix: String) throws {
        let current = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
        let base = parent.map { URL(fileURLWithPath: $0) } ?? current.deletingLastPathComponent()
        let name = "\(prefix)-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let url = base.standardizedFileURL.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: url,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        path = url.path
    }

    /// The path of a name inside.
    public func path(of name: String) -> String { path + "/" + name }

    /// Removes the files of a mebibyte or more, at any depth.
    ///
    /// Small files stay until ``remove()``. ext4 avoids the numbers of files deleted in the last half minute, so that after
    /// thousands of removals each new file costs a millisecond, which would distort the next measurement.
    public func dropLargeFiles() {
        for name in FileManager.default.enumerator(atPath: path) ?? .init() {
            guard let name = name as? String else { continue }
            let attributes = try? FileManager.default.attributesOfItem(atPath: self.path(of: name))
            guard let size = attributes?[.size] as? NSNumber, size.intValue >= 1 << 20,
                attributes?[.type] as? FileAttributeType == .typeRegular
            else { continue }
            try? FileManager.default.removeItem(atPath: self.path(of: name))
        }
    }

    /// Removes the directory with its content.
    public func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Whether its files are only in memory, where figures say little about a disk; false if unknown.
    public var isInMemory: Bool {
        guard let mounts = FileManager.default.contents(atPath: "/proc/self/mounts"),
            let text = String(bytes: mounts, encoding: .utf8)
        else { return false }
        return Self.isInMemory(path, mounts: text)
    }

    /// Finds the longest mount point above `path` in the lines `device point type …`; the last one counts if several are equal.
    static func isInMemory(_ path: String, mounts: String) -> Bool {
        var (longest, type) = (-1, Substring())
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count >= 3 else { continue }
            let point = String(fields[1])
            let isAbove = point == "/" || path == point || path.hasPrefix(point + "/")
            if isAbove, point.count >= longest { (longest, type) = (point.count, fields[2]) }
        }
        return type == "tmpfs" || type == "ramfs"
    }
}
