// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// A directory for one run's files, which is gone afterwards.
public struct ScratchDirectory: Sendable {
    /// Its absolute path.
    public let path: String

    /// Makes a directory with a new name.
    ///
    /// - Parameter parent: where; nil: in the current directory's parent, so that a checkout stays clean.
    /// - Throws: what the system says when it cannot be made.
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

    /// Removes the files of a mebibyte and more, beneath it at any depth.
    ///
    /// The small ones stay until ``remove()``: ext4 shuns the numbers of files deleted in the last half minute, so that after
    /// the removal of thousands each new file costs a millisecond, and what comes next would be measured wrongly.
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

    /// Removes it with all it holds.
    public func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Whether its files live in memory only, where figures say little about a disk; false where the system does not tell.
    public var isInMemory: Bool {
        guard let mounts = FileManager.default.contents(atPath: "/proc/self/mounts"),
            let text = String(bytes: mounts, encoding: .utf8)
        else { return false }
        return Self.isInMemory(path, mounts: text)
    }

    /// Finds the longest mount point above `path` in the lines `device point type …`; of equal ones the last counts.
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
