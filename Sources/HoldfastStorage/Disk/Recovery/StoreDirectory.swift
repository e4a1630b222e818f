// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// Prepares a directory for a log-structured store: it must be safe, belong to a store or to nobody, be held and locked by this
/// store alone, and have a known format.
struct StoreDirectory: Sendable {
    let layout: StoreLayout
    let files: any FileSystem

    /// What opening found.
    struct Opened: Sendable {
        /// The file system, with the directory and its subdirectories held.
        let files: any FileSystem
        /// Holds the lock until it is closed.
        let lock: OpenFile
        /// FORMAT, as it was last written; a new one if none was known.
        let manifest: Manifest
        /// Whether the directory had no format that this version knows.
        let isNew: Bool
        /// The bytes of files that were set aside and could not be removed.
        let leftover: Int
    }

    /// Prepares the directory; the lock is held when this returns, and not if it throws.
    ///
    /// A format of another version, or one with two damaged copies, is set aside together with everything that belongs to it, and
    /// removed.
    ///
    /// - Parameter segmentSize: the size of segments if the directory is new.
    /// - Throws: `.badConfiguration` for a path that is not absolute; `.unsafeDirectory` if another user owns the directory or may
    ///   write to it or replace it, if it is a link or a file, or if it contains files of somebody else; `.locked` with the
    ///   holder's process number; `.io`, `.noSpace`.
    func open(
        segmentSize: Int,
        using generator: inout some RandomNumberGenerator
    ) throws(StoreError) -> Opened {
        let files = try heldRoot(makesIt: true)
        let owner = DirectoryOwnership(layout: layout, files: files)
        if let name = try disk(try owner.foreignName()) {
            let message =
                "\(layout.root) is neither empty nor a store: it contains \"\(name)\". Choose an empty directory, or remove what is in "
                + "this one."
            throw StoreError(.unsafeDirectory, message)
        }
        let lock = try takeLock(files)
        do throws(StoreError) {
            let quarantine = Quarantine(layout: layout, files: files)
            var manifest = try disk(try Self.manifest(layout, files: files))
            let isNew = manifest == nil
            if isNew {
                try disk(try quarantine.take())
                let fresh = FormatFile(.new(segmentSize: segmentSize, using: &generator))
                manifest = try disk(try create(fresh, files: files))
            }
            var held = files
            for directory in [layout.segments, layout.blobs] {
                held = try Self.hold(directory, makesIt: true, files: held)
            }
            // A clean close is trusted after a power failure, so what it depends on must be on the disk.
            try disk(try files.syncDirectory(layout.root))
            guard let manifest else {
                throw StoreError(.corrupt, "\(layout.format) disappeared; open the store again.")
            }
            return Opened(
                files: held,
                lock: lock,
                manifest: manifest,
                isNew: isNew,
                leftover: quarantine.remove()
            )
        } catch {
            files.close(lock)
            throw error
        }
    }

    /// The file system with the directory and its subdirectories held, for reading only.
    func held() throws(StoreError) -> any FileSystem {
        var files = try heldRoot(makesIt: false)
        for directory in [layout.segments, layout.blobs] {
            files = try Self.hold(directory, makesIt: false, files: files)
        }
        return files
    }

    // MARK: Directories

    private func heldRoot(makesIt: Bool) throws(StoreError) -> any FileSystem {
        guard layout.root.hasPrefix("/"), !layout.root.utf8.contains(0) else {
            throw StoreError(
                .badConfiguration,
                "\"\(layout.root)\" is not an absolute path. Give the full path of the directory."
            )
        }
        if makesIt { try checkParent() }
        return try Self.hold(layout.root, makesIt: makesIt, files: files)
    }

    /// Anyone who may write to the parent can replace this directory.
    private func checkParent() throws(StoreError) {
        // With a slash and a dot, since the parent may be a link, like /tmp on some systems.
        let parent = layout.root.split(separator: "/").dropLast().map { "/" + $0 }.joined()
        guard let attributes = try disk(try files.attributesIfThere(parent + "/."))
        else { return }
        let isSticky = attributes.permissions & 0o1000 != 0
        guard isSticky || attributes.permissions & 0o002 == 0 else {
            let message =
                "Anyone can write to \(parent), which contains \(layout.root); remove that permission (chmod o-w)."
            throw StoreError(.unsafeDirectory, message)
        }
    }

    private static func hold(
        _ path: String,
        makesIt: Bool,
        files: any FileSystem
    ) throws(StoreError) -> any FileSystem {
        if makesIt { try disk(try files.createDirectoryIfMissing(path)) }
        // Checked by name first, since a link or a file cannot be held, and then on the held directory.
        try check(try attributes(of: path, makesIt: makesIt, files), path: path)
        let held = try disk(try files.holding(path))
        try check(try attributes(of: path, makesIt: makesIt, held), path: path)
        return held
    }

    private static func attributes(
        of path: String,
        makesIt: Bool,
        _ files: any FileSystem
    ) throws(StoreError) -> FileAttributes {
        do throws(FileSystemError) {
            return try files.attributes(of: path)
        } catch {
            guard !makesIt, error.errno == SystemNumber.notFound else { throw StoreError(disk: error) }
            // A store that is being made has its format before its directories.
            let message =
                "There is no cache: \(path) is missing. Check the path, or first run the program that fills the cache."
            throw StoreError(.badConfiguration, message)
        }
    }

    private static func check(_ attributes: FileAttributes, path: String) throws(StoreError) {
        guard attributes.kind == .directory else {
            throw StoreError(.unsafeDirectory, "\(path) is a link or a file; choose a real directory.")
        }
        guard attributes.isOwn else {
            throw StoreError(
                .unsafeDirectory,
                "\(path) belongs to another user; run this as that user (sudo -u USER), or choose a directory of your own."
            )
        }
        guard attributes.permissions & 0o022 == 0 else {
            let message = "Others can write to \(path); remove that permission (chmod go-w)."
            throw StoreError(.unsafeDirectory, message)
        }
    }

    // MARK: FORMAT

    /// The contents of FORMAT; nil if there is none, or none of this version with an intact copy.
    static func content(_ layout: StoreLayout, files: any FileSystem) throws(FileSystemError) -> FormatFile? {
        guard let file = try files.openIfThere(layout.format) else { return nil }
        defer { files.close(file) }
        return try content(of: file, files)
    }

    private static func content(of file: OpenFile, _ files: any FileSystem) throws(FileSystemError) -> FormatFile? {
        let size = min(try files.size(of: file), FormatFile.maximumSize)
        do throws(FileSystemError) {
            return FormatFile(try files.read(file, from: 0, count: size))
        } catch {
            guard error.errno == SystemNumber.damaged else { throw error }
        }
        // A part that cannot be read any more counts as zeros.
        var bytes: [UInt8] = []
        while bytes.count < size {
            let count = min(Geometry.page, size - bytes.count)
            let part = (try? files.read(file, from: bytes.count, count: count)) ?? []
            bytes += part + [UInt8](repeating: 0, count: count - part.count)
        }
        return FormatFile(bytes)
    }

    /// FORMAT, open for writing; nil if there is none that this version knows.
    private static func manifest(_ layout: StoreLayout, files: any FileSystem) throws(FileSystemError) -> Manifest? {
        guard try files.attributesIfThere(layout.format)?.kind == .file else { return nil }
        let file = try files.open(layout.format, .readWrite)
        do throws(FileSystemError) {
            if let content = try content(of: file, files) { return Manifest(file, content: content, files: files) }
        } catch {
            files.close(file)
            throw error
        }
        files.close(file)
        return nil
    }

    /// Makes FORMAT, which gets its name once it is complete and durable.
    private func create(_ content: FormatFile, files: any FileSystem) throws(FileSystemError) -> Manifest {
        try files.removeIfThere(layout.temporaryFormat)
        let file = try files.open(layout.temporaryFormat, .create)
        do throws(FileSystemError) {
            // With room for a list, so that a full device prevents no later change.
            try files.allocate(file, size: FormatFile.listOffset + Geometry.page)
            try files.write(ByteChunk(content.encode()), to: file, at: 0)
            try files.sync(file)
            try files.rename(layout.temporaryFormat, to: layout.format)
            try files.syncDirectory(layout.root)
        } catch {
            files.close(file)
            throw error
        }
        return Manifest(file, content: content, files: files)
    }

    // MARK: The lock

    private func takeLock(_ files: any FileSystem) throws(StoreError) -> OpenFile {
        let file = try disk(try files.open(layout.lock, .readWrite))
        do throws(StoreError) {
            guard try disk(try files.lock(file)) else {
                throw StoreError(.locked, LockHolder.refusal(layout, bytes: try? files.read(file, from: 0, count: 20)))
            }
            try disk(try files.truncate(file, to: 0))
            try disk(try files.write(ByteChunk(copying: "\(SystemNumber.processID)\n".utf8), to: file, at: 0))
            return file
        } catch {
            files.close(file)
            throw error
        }
    }
}

/// Distinguishes a store's directory, or an empty one, from one that belongs to somebody else, in which nothing may be touched.
struct DirectoryOwnership: Sendable {
    let layout: StoreLayout
    let files: any FileSystem

    /// The name of something that does not belong to a store; nil if the directory is a store's, or practically empty.
    ///
    /// A store is recognized by the beginning of its FORMAT or of a segment. The remains of a store that was killed while it was
    /// made count as nothing.
    func foreignName() throws(FileSystemError) -> String? {
        if try isStore(layout.root) { return nil }
        let names = try files.list(layout.root).sorted()
        // One whose process ended while it was set aside.
        for name in names where Quarantine.isQuarantine(name) {
            if try isStore("\(layout.root)/\(name)") { return nil }
        }
        return try firstForeign(names, in: layout.root)
    }

    private func firstForeign(_ names: [String], in directory: String) throws(FileSystemError) -> String? {
        for name in names where try !isHarmless(name, in: directory) { return name }
        return nil
    }

    private func isStore(_ directory: String) throws(FileSystemError) -> Bool {
        for offset in FormatFile.copyOffsets {
            if try begins("\(directory)/FORMAT", at: offset, with: StoreFormat.magic) { return true }
        }
        let segments = "\(directory)/segments"
        guard try files.attributesIfThere(segments)?.kind == .directory else { return false }
        for name in try files.list(segments) where FileNumber.number(in: name, suffix: StoreLayout.segmentSuffix) != nil
        {
            if try begins("\(segments)/\(name)", at: 0, with: SegmentHeader.magic) { return true }
        }
        return false
    }

    private func begins(_ path: String, at offset: Int, with magic: UInt64) throws(FileSystemError) -> Bool {
        guard let bytes = try start(of: path, at: offset, count: 8), bytes.count == 8 else { return false }
        return bytes.withUnsafeBytes { $0.number(at: 0) == magic }
    }

    /// The first bytes of a file; nil if there is none.
    private func start(of path: String, at offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        guard try files.attributesIfThere(path)?.kind == .file, let file = try files.openIfThere(path) else {
            return nil
        }
        defer { files.close(file) }
        do throws(FileSystemError) {
            return try files.read(file, from: offset, count: count)
        } catch {
            guard error.errno == SystemNumber.damaged else { throw error }
            return []
        }
    }

    private func isHarmless(_ name: String, in directory: String) throws(FileSystemError) -> Bool {
        let path = "\(directory)/\(name)"
        let kind = try files.attributesIfThere(path)?.kind
        switch name {
        case "lock":
            guard let bytes = try start(of: path, at: 0, count: 21) else { return false }
            // Zeros, after a power failure.
            return bytes.count <= 20 && bytes.allSatisfy { (48...57).contains($0) || $0 == 10 || $0 == 0 }
        case "FORMAT", "FORMAT" + StoreLayout.temporarySuffix:
            // Its bytes and its name are made durable before it is used.
            guard let bytes = try start(of: path, at: 0, count: StoreFormat.size) else { return false }
            return bytes.allSatisfy { $0 == 0 } || FormatFile.isOurs(bytes)
        case "segments", "blobs":
            return kind == .directory ? try files.list(path).isEmpty : false
        case "lost+found":
            // The root of a file system contains it.
            return kind == .directory
        default:
            guard kind == .directory, Quarantine.isQuarantine(name), directory == layout.root else { return false }
            return try firstForeign(files.list(path), in: path) == nil
        }
    }
}

/// Sets a directory of an unknown or damaged format aside and removes it: only files with names that a store uses.
struct Quarantine: Sendable {
    let layout: StoreLayout
    let files: any FileSystem

    private typealias Part = (directory: String, suffixes: [String])

    /// The directories of a store and the suffixes of their files.
    private static let parts: [Part] = [
        ("segments", [StoreLayout.segmentSuffix, StoreLayout.temporarySuffix]),
        ("blobs", [StoreLayout.blobSuffix]),
    ]
    /// Those of version 1.
    private static let firstParts: [Part] = [("k", [".key", ".tmp"]), ("b", [".body"])]
    private static let singles = ["FORMAT", "FORMAT" + StoreLayout.temporarySuffix]

    /// Renames what a store left; the directory is then like a new one.
    func take() throws(FileSystemError) {
        let parts = try isFirstVersion() ? Self.parts + Self.firstParts : Self.parts
        let ours = parts.map(\.directory) + Self.singles
        let names = try files.list(layout.root).filter(ours.contains)
        guard !names.isEmpty else { return }
        let aside = layout.quarantine(FileNumber.random())
        try files.createDirectory(aside)
        try files.syncDirectory(layout.root)
        // The format goes last, and the segments before it: if this is interrupted, the rest has no valid format, and still shows
        // whose it is.
        let last = ["segments"] + Self.singles
        for name in names.filter({ !last.contains($0) }) + last.filter(names.contains) {
            try files.rename("\(layout.root)/\(name)", to: "\(aside)/\(name)")
        }
    }

    /// Removes what was set aside now or earlier.
    ///
    /// - Returns: the bytes, in whole blocks, of files that stay because they have other names or could not be removed.
    func remove() -> Int {
        var left = 0
        for name in (try? files.list(layout.root)) ?? [] where Self.isQuarantine(name) {
            let aside = "\(layout.root)/\(name)"
            for (directory, suffixes) in Self.parts + Self.firstParts {
                left += removeFiles(in: "\(aside)/\(directory)") { file in
                    suffixes.contains { FileNumber.number(in: file, suffix: $0) != nil }
                }
            }
            left += removeFiles(in: aside, where: Self.singles.contains)
        }
        return left
    }

    static func isQuarantine(_ name: String) -> Bool {
        guard name.hasPrefix(StoreLayout.quarantinePrefix) else { return false }
        return FileNumber.number(in: String(name.dropFirst(StoreLayout.quarantinePrefix.count)), suffix: "") != nil
    }

    private func isFirstVersion() throws(FileSystemError) -> Bool {
        guard let file = try files.openIfThere(layout.format) else { return false }
        defer { files.close(file) }
        return (try? files.read(file, from: 8, count: 4)) == [1, 0, 0, 0]
    }

    private func removeFiles(in directory: String, where isOurs: (String) -> Bool) -> Int {
        guard (try? files.attributes(of: directory))?.kind == .directory else { return 0 }
        var left = 0
        for name in (try? files.list(directory)) ?? [] {
            let path = "\(directory)/\(name)"
            guard let attributes = try? files.attributes(of: path), attributes.kind == .file else { continue }
            if isOurs(name), (try? files.remove(path)) != nil { continue }
            // No file counts for more than 64 TiB, so that sums do not overflow.
            left += SpaceQuota.blocks(min(max(attributes.size, 0), 1 << 46))
        }
        try? files.removeDirectory(directory)
        return left
    }
}

/// The note in the file `lock` about the process that took the lock last.
enum LockHolder {
    /// The number of that process; nil if none is noted or it no longer exists.
    ///
    /// This does not try to take the lock: while it held it, no store could be opened.
    static func read(_ layout: StoreLayout, files: any FileSystem) -> Int32? {
        guard let file = try? files.openIfThere(layout.lock) else { return nil }
        defer { files.close(file) }
        guard let bytes = try? files.read(file, from: 0, count: 20), let number = number(in: bytes) else { return nil }
        return isAlive(number) ? number : nil
    }

    /// Why the directory is not available, from the bytes of the file.
    static func refusal(_ layout: StoreLayout, bytes: [UInt8]?) -> String {
        switch number(in: bytes ?? []) {
        case SystemNumber.processID?:
            "This process (\(SystemNumber.processID)) has \(layout.root) open already; close that store first, or use it."
        case let number?: "Process \(number) has \(layout.root) open; end it first."
        case nil: "An unknown process has \(layout.root) open; end it first."
        }
    }

    /// The number in the bytes of the file.
    static func number(in bytes: [UInt8]) -> Int32? {
        let digits = bytes.prefix { (48...57).contains($0) }
        guard let number = Int32(String(decoding: digits, as: UTF8.self)), number > 0 else { return nil }
        return number
    }

    private static func isAlive(_ process: Int32) -> Bool {
        kill(process, 0) == 0 || errno == EPERM
    }
}

/// Where the files of a log-structured store are.
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

    /// A layout in this directory; slashes at the end are dropped, since they would make a symbolic link be followed.
    init(root: String) {
        var root = root
        while root.utf8.count > 1, root.hasSuffix("/") { root.removeLast() }
        self.root = root
    }

    /// What must be known before any other file can be read.
    var format: String { root + "/FORMAT" }
    /// The first format while it is being written.
    var temporaryFormat: String { format + Self.temporarySuffix }
    var lock: String { root + "/lock" }
    var segments: String { root + "/segments" }
    var blobs: String { root + "/blobs" }

    /// The file of a segment; like the other names here, it reveals nothing about the contents.
    func segment(_ number: UInt64) -> String { "\(segments)/\(FileNumber.name(number))\(Self.segmentSuffix)" }
    /// A segment that is not begun yet.
    func segmentInTheMaking(_ number: UInt64) -> String {
        "\(segments)/\(FileNumber.name(number))\(Self.temporarySuffix)"
    }
    func blob(_ number: UInt64) -> String { "\(blobs)/\(FileNumber.name(number))\(Self.blobSuffix)" }
    func quarantine(_ number: UInt64) -> String { "\(root)/\(Self.quarantinePrefix)\(FileNumber.name(number))" }
}

/// The numbers in file names, so that a name reveals nothing about the contents.
enum FileNumber {
    /// A unique number for what is set aside.
    static func random() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return UInt64.random(in: 1 ... .max, using: &generator)
    }

    /// Sixteen lower-case hexadecimal digits.
    static func name(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The number in a name with this suffix; nil for every other name.
    static func number(in name: String, suffix: String) -> UInt64? {
        guard name.utf8.count == 16 + suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
        guard let number = UInt64(name.prefix(16), radix: 16), self.name(number) + suffix == name else { return nil }
        return number
    }
}
