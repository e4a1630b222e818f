// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Where the files of a log-structured store lie.
///
///     directory/
///       FORMAT           version, secret, epoch, which segments there are; written in place
///       lock             advisory lock; process number of the holder
///       segments/N.seg   records, appended; N is sixteen hexadecimal digits and only ever grows
///       blobs/N.blob     a body too large for a record
///       set-aside-N/     what an unknown format left (the quarantine), on its way out
struct StoreLayout: Sendable, Hashable {
    static let segmentSuffix = ".seg"
    static let blobSuffix = ".blob"
    static let temporarySuffix = ".tmp"
    static let quarantinePrefix = "set-aside-"

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
    /// The first format on its way.
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
    func quarantine(_ number: UInt64) -> String { "\(root)/\(Self.quarantinePrefix)\(FileNumber.name(number))" }
}

/// The numbers by which files are named, so that a name says nothing of what the file holds.
enum FileNumber {
    /// A number that nothing else has, for what is set aside.
    static func random() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return UInt64.random(in: 1 ... .max, using: &generator)
    }

    /// Sixteen lower-case hexadecimal digits.
    static func name(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The number in a name of this suffix; nil for every other name.
    static func number(in name: String, suffix: String) -> UInt64? {
        guard name.utf8.count == 16 + suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
        guard let number = UInt64(name.prefix(16), radix: 16), self.name(number) + suffix == name else { return nil }
        return number
    }
}
