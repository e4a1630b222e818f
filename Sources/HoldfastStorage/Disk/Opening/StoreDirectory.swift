// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Makes a directory ready for a log-structured store: safe, locked by this store alone, of the known format.
struct StoreDirectory: Sendable {
    let layout: StoreLayout
    let files: any FileSystem

    /// What opening found.
    struct Opened: Sendable {
        /// Holds the lock until it is closed.
        let lock: OpenFile
        /// The format, as it was written last; a new one where none was known.
        let format: StoreFormat
        /// Whether the directory had no format that this version knows.
        let isNew: Bool
        /// The bytes of files that were set aside and could not be removed.
        let leftover: Int
    }

    /// Prepares the directory; the lock is held when this returns, and not when it throws.
    ///
    /// A format that is unknown, damaged or of version 1 is set aside with all that lies under it and removed.
    ///
    /// - Parameter segmentSize: the size of segments where the directory is new.
    /// - Throws: `.badConfiguration` for a path that is not absolute; `.unsafeDirectory` where another user owns the directory
    ///   or may write to it, or where it is a link or a file; `.locked` with the holder's process number; `.io`, `.noSpace`.
    func open(
        segmentSize: Int,
        using generator: inout some RandomNumberGenerator
    ) throws(StoreError) -> Opened {
        try checkRoot()
        let lock = try takeLock()
        do throws(StoreError) {
            let aside = SetAside(layout: layout, files: files)
            var format = try disk { () throws(FileSystemError) in try readFormat() }
            let isNew = format == nil
            if isNew {
                try disk { () throws(FileSystemError) in try aside.setAside() }
                let fresh = StoreFormat.new(segmentSize: segmentSize, using: &generator)
                try disk { () throws(FileSystemError) in try write(fresh) }
                format = fresh
            }
            for directory in [layout.segments, layout.blobs] { try checkDirectory(directory) }
            guard let format else { throw StoreError(.corrupt, "\(layout.format) vanished; open the store again.") }
            return Opened(lock: lock, format: format, isNew: isNew, leftover: aside.remove())
        } catch {
            files.close(lock)
            throw error
        }
    }

    /// Replaces the format file at once and durably.
    func write(_ format: StoreFormat) throws(FileSystemError) {
        if let failure = try replace(format) { throw failure }
    }

    /// Replaces the format file at once.
    ///
    /// - Returns: nil when it is durable; else why it may be the old one again after a loss of power.
    /// - Throws: when the old one is still in force.
    func replace(_ format: StoreFormat) throws(FileSystemError) -> FileSystemError? {
        try files.removeIfThere(layout.temporaryFormat)
        let file = try files.open(layout.temporaryFormat, .create)
        do throws(FileSystemError) {
            try files.write(ByteChunk(format.encode()), to: file, at: 0)
            try files.sync(file)
        } catch {
            files.close(file)
            throw error
        }
        files.close(file)
        try files.rename(layout.temporaryFormat, to: layout.format)
        do throws(FileSystemError) { try files.syncDirectory(layout.root) } catch { return error }
        return nil
    }

    /// The format; nil when there is none that this version knows.
    private func readFormat() throws(FileSystemError) -> StoreFormat? {
        guard let attributes = try files.attributesIfThere(layout.format), attributes.kind == .file,
            let file = try files.openIfThere(layout.format)
        else { return nil }
        defer { files.close(file) }
        do throws(FileSystemError) {
            return StoreFormat.decode(try files.read(file, from: 0, count: StoreFormat.size + 1))
        } catch {
            // A file that cannot be read any more is as good as none.
            if error.errno == SystemNumber.damaged { return nil }
            throw error
        }
    }

    private func checkRoot() throws(StoreError) {
        guard layout.root.hasPrefix("/"), !layout.root.utf8.contains(0) else {
            throw StoreError(.badConfiguration, "\"\(layout.root)\" is no absolute path; name the directory in full.")
        }
        try checkDirectory(layout.root)
    }

    private func checkDirectory(_ path: String) throws(StoreError) {
        try disk { () throws(FileSystemError) in try files.createDirectoryIfMissing(path) }
        let attributes = try disk { () throws(FileSystemError) in try files.attributes(of: path) }
        guard attributes.kind == .directory else {
            throw StoreError(.unsafeDirectory, "\(path) is a link or a file; choose a real directory.")
        }
        guard attributes.isOwn else {
            throw StoreError(.unsafeDirectory, "\(path) belongs to another user; choose a directory of your own.")
        }
        guard attributes.permissions & 0o022 == 0 else {
            let message = "\(path) can be written by others; take that right away (chmod go-w)."
            throw StoreError(.unsafeDirectory, message)
        }
    }

    private func takeLock() throws(StoreError) -> OpenFile {
        let file = try disk { () throws(FileSystemError) in try files.open(layout.lock, .readWrite) }
        do throws(StoreError) {
            guard try disk({ () throws(FileSystemError) in try files.lock(file) }) else {
                let holder = (try? files.read(file, from: 0, count: 20)) ?? []
                let name = String(decoding: holder.prefix { (48...57).contains($0) }, as: UTF8.self)
                let message = "Process \(name.isEmpty ? "of unknown number" : name) holds \(layout.root); end it first."
                throw StoreError(.locked, message)
            }
            try disk { () throws(FileSystemError) in
                try files.truncate(file, to: 0)
                try files.write(ByteChunk(copying: "\(SystemNumber.processID)\n".utf8), to: file, at: 0)
            }
            return file
        } catch {
            files.close(file)
            throw error
        }
    }

    private func disk<Value>(_ step: () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
        do { return try step() } catch { throw StoreError(disk: error) }
    }
}
