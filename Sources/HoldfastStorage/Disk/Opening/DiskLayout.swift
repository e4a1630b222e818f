// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where the files of a disk store lie.
///
/// A body is written under its last name at once: it counts only when a key's file names it.
///
///     directory/
///       FORMAT           version and secret; replaced by rename
///       lock             advisory lock; process number of the holder
///       k/N.key          one file for each primary key, with the records of all its variants; k/N.tmp on its way there
///       b/N.body         one file for each body that is not empty
///       set-aside-N/     what an unknown format left, on its way out
struct DiskLayout: Sendable {
    static let keySuffix = ".key"
    static let bodySuffix = ".body"
    static let temporarySuffix = ".tmp"
    static let setAsidePrefix = "set-aside-"

    /// The directory, without a slash at the end.
    let root: String

    /// A layout in this directory; slashes at the end are dropped, since a symbolic link would be followed behind them.
    init(root: String) {
        var root = root
        while root.utf8.count > 1, root.hasSuffix("/") { root.removeLast() }
        self.root = root
    }

    var format: String { root + "/FORMAT" }
    var lock: String { root + "/lock" }
    var keys: String { root + "/k" }
    var bodies: String { root + "/b" }

    /// The file of a primary key; like the names below it tells nothing of what the file holds.
    func keyFile(_ number: UInt64) -> String { "\(keys)/\(FileNumber.name(number))\(Self.keySuffix)" }
    func temporaryFile(_ number: UInt64) -> String { "\(keys)/\(FileNumber.name(number))\(Self.temporarySuffix)" }
    func bodyFile(_ number: UInt64) -> String { "\(bodies)/\(FileNumber.name(number))\(Self.bodySuffix)" }
    func setAside(_ number: UInt64) -> String { "\(root)/\(Self.setAsidePrefix)\(FileNumber.name(number))" }
}
