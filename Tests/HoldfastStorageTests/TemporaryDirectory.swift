// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

/// A directory of its own under the system's place for temporary files.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        let base = FileManager.default.temporaryDirectory.path
        path = base + "/holdfast-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Paths of all regular files below, relative, sorted.
    func files() -> [String] {
        guard let walk = FileManager.default.enumerator(atPath: path) else { return [] }
        return walk.compactMap { $0 as? String }.filter { isFile($0) }.sorted()
    }

    private func isFile(_ name: String) -> Bool {
        var isDirectory: ObjCBool = false
        return FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
            && !isDirectory.boolValue
    }

    /// The sizes of all files, each rounded up to blocks of 4 KiB.
    func blockBytes() -> Int {
        files().reduce(0) { sum, name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: path + "/" + name)
            let size = (attributes?[.size] as? NSNumber)?.intValue ?? 0
            return sum + (size + 4_095) / 4_096 * 4_096
        }
    }

    func bytes(of name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path + "/" + name)))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path + "/" + name))
    }
}
