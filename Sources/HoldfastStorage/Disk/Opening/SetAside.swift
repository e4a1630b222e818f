// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Gets a directory of an unknown or damaged format out of the way, and removes it: files that bear names a store gives,
/// and no others.
struct SetAside: Sendable {
    let layout: StoreLayout
    let files: any FileSystem

    /// The directories of a store and the suffixes of their files, those of version 1 included.
    private static let parts: [(directory: String, suffixes: [String])] = [
        ("segments", [StoreLayout.segmentSuffix, StoreLayout.temporarySuffix]),
        ("blobs", [StoreLayout.blobSuffix]),
        ("k", [".key", ".tmp"]),
        ("b", [".body"]),
    ]
    private static let singles = ["FORMAT", "FORMAT" + StoreLayout.temporarySuffix]

    /// Renames what a store left; the directory is as good as new after it.
    func setAside() throws(FileSystemError) {
        let ours = Self.parts.map(\.directory) + Self.singles
        let names = try files.list(layout.root).filter(ours.contains)
        guard !names.isEmpty else { return }
        let aside = layout.setAside(FileNumber.random())
        try files.createDirectory(aside)
        // The format goes last: what is left of a run that was cut short is still without a good one.
        for name in names.sorted(by: { !Self.singles.contains($0) && Self.singles.contains($1) }) {
            try files.rename("\(layout.root)/\(name)", to: "\(aside)/\(name)")
        }
    }

    /// Removes what was set aside now or earlier.
    ///
    /// - Returns: the bytes, in whole blocks, of files that stay because they bear other names or could not be removed.
    func remove() -> Int {
        var left = 0
        for name in (try? files.list(layout.root)) ?? [] where isAside(name) {
            let aside = "\(layout.root)/\(name)"
            for (directory, suffixes) in Self.parts {
                left += removeFiles(in: "\(aside)/\(directory)") { file in
                    suffixes.contains { FileNumber.number(in: file, suffix: $0) != nil }
                }
            }
            left += removeFiles(in: aside, where: Self.singles.contains)
        }
        return left
    }

    private func isAside(_ name: String) -> Bool {
        guard name.hasPrefix(StoreLayout.setAsidePrefix) else { return false }
        return FileNumber.number(in: String(name.dropFirst(StoreLayout.setAsidePrefix.count)), suffix: "") != nil
    }

    private func removeFiles(in directory: String, where isOurs: (String) -> Bool) -> Int {
        guard (try? files.attributes(of: directory))?.kind == .directory else { return 0 }
        var left = 0
        for name in (try? files.list(directory)) ?? [] {
            let path = "\(directory)/\(name)"
            guard let attributes = try? files.attributes(of: path), attributes.kind == .file else { continue }
            if isOurs(name), (try? files.remove(path)) != nil { continue }
            left += Self.blocks(attributes.size)
        }
        try? files.removeDirectory(directory)
        return left
    }

    /// Whole blocks of 4 KiB; no file counts for more than 64 TiB, so that sums do not overflow.
    private static func blocks(_ size: Int) -> Int {
        (min(max(size, 0), 1 << 46) + 4_095) / 4_096 * 4_096
    }
}
