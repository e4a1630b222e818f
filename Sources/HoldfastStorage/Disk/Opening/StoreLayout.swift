// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where the files of a log-structured store lie.
///
///     directory/
///       FORMAT           version, secret, epoch; replaced by rename
///       lock             advisory lock; process number of the holder
///       segments/N.seg   records, appended; N is sixteen hexadecimal digits and only ever grows
///       blobs/N.blob     a body too large for a record
///       set-aside-N/     what an unknown format left, on its way out
struct StoreLayout: Sendable, Hashable {
    static let segmentSuffix = ".seg"
    static let blobSuffix = ".blob"
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

    /// What must be known before any other file can be read.
    var format: String { root + "/FORMAT" }
    /// The next format on its way.
    var temporaryFormat: String { format + Self.temporarySuffix }
    var lock: String { root + "/lock" }
    var segments: String { root + "/segments" }
    var blobs: String { root + "/blobs" }

    /// The file of a segment; like the names below it tells nothing of what the file holds.
    func segment(_ number: UInt64) -> String { "\(segments)/\(FileNumber.name(number))\(Self.segmentSuffix)" }
    /// A segment that is not yet begun.
    func segmentInTheMaking(_ number: UInt64) -> String {
        "\(segments)/\(FileNumber.name(number))\(Self.temporarySuffix)"
    }
    func blob(_ number: UInt64) -> String { "\(blobs)/\(FileNumber.name(number))\(Self.blobSuffix)" }
    func setAside(_ number: UInt64) -> String { "\(root)/\(Self.setAsidePrefix)\(FileNumber.name(number))" }
}
