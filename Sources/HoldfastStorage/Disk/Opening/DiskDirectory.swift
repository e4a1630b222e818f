// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Makes a directory ready for a store: safe, locked by this store alone, of the known format.
struct DiskDirectory: Sendable {
    let layout: DiskLayout
    let files: any FileSystem

    /// What preparing found.
    struct Prepared: Sendable {
        let lockFile: OpenFile
        let secret: [UInt8]
        /// Bytes of files beside the entries.
        let otherCost: Int
    }

    /// Prepares the directory; the lock is held when this returns.
    func prepare() throws(StoreError) -> Prepared {
        try createRoot()
        let lockFile = try lock()
        do throws(StoreError) {
            let secret = try readFormat()
            for directory in [layout.keys, layout.bodies] { try createDirectory(directory) }
            let leftover = removeSetAside()
            return Prepared(lockFile: lockFile, secret: secret, otherCost: 2 * DiskState.blocks(1) + leftover)
        } catch {
            files.close(lockFile)
            throw error
        }
    }

    private func createRoot() throws(StoreError) {
        guard layout.root.hasPrefix("/"), !layout.root.utf8.contains(0) else {
            throw StoreError(.badConfiguration, "\"\(layout.root)\" is no absolute path; name the directory in full.")
        }
        try createDirectory(layout.root)
        let attributes = try disk { () throws(FileSystemError) in try files.attributes(of: layout.root) }
        guard attributes.isOwn else {
            throw StoreError(
                .unsafeDirectory,
                "\(layout.root) belongs to another user; choose a directory of your own."
            )
        }
        guard attributes.permissions & 0o022 == 0 else {
            let message = "\(layout.root) can be written by others; take that right away (chmod go-w)."
            throw StoreError(.unsafeDirectory, message)
        }
    }

    private func createDirectory(_ path: String) throws(StoreError) {
        try disk { () throws(FileSystemError) in try files.createDirectoryIfMissing(path) }
        let attributes = try disk { () throws(FileSystemError) in try files.attributes(of: path) }
        guard attributes.kind == .directory else {
            throw StoreError(.unsafeDirectory, "\(path) is a link or a file; choose a real directory.")
        }
    }

    private func lock() throws(StoreError) -> OpenFile {
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

    /// The secret of the format file; what an unknown or damaged one stands over is set aside.
    private func readFormat() throws(StoreError) -> [UInt8] {
        if let secret = try readFile(layout.format, limit: 4_096).flatMap(FormatFile.decode) { return secret }
        try setAside()
        let secret = FormatFile.newSecret()
        let temporary = layout.format + DiskLayout.temporarySuffix
        try disk { () throws(FileSystemError) in
            try files.removeIfThere(temporary)
            let file = try files.open(temporary, .create)
            defer { files.close(file) }
            try files.write(ByteChunk(FormatFile.encode(secret: secret)), to: file, at: 0)
            try files.rename(temporary, to: layout.format)
        }
        return secret
    }

    /// The bytes of a file, nil when it is not there; longer ones are cut at `limit`.
    private func readFile(_ path: String, limit: Int) throws(StoreError) -> [UInt8]? {
        try disk { () throws(FileSystemError) in
            guard let file = try files.openIfThere(path) else { return nil }
            defer { files.close(file) }
            return try files.read(file, from: 0, count: limit)
        }
    }

    private func setAside() throws(StoreError) {
        try disk { () throws(FileSystemError) in
            let names = try files.list(layout.root).filter { ["FORMAT", "k", "b"].contains($0) }
            guard !names.isEmpty else { return }
            let aside = layout.setAside(FileNumber.random())
            try files.createDirectory(aside)
            for name in names { try files.rename("\(layout.root)/\(name)", to: "\(aside)/\(name)") }
        }
    }

    /// Removes what was set aside now or earlier, by the names this store gives and no others.
    ///
    /// - Returns: bytes that are left.
    private func removeSetAside() -> Int {
        let names = (try? files.list(layout.root)) ?? []
        var left = 0
        for name in names where name.hasPrefix(DiskLayout.setAsidePrefix) {
            let aside = "\(layout.root)/\(name)"
            guard (try? files.attributes(of: aside))?.kind == .directory else { continue }
            for part in ["k", "b"] {
                let suffixes = [DiskLayout.keySuffix, DiskLayout.bodySuffix, DiskLayout.temporarySuffix]
                left += removeFiles(in: "\(aside)/\(part)") { file in
                    suffixes.contains { FileNumber.number(in: file, suffix: $0) != nil }
                }
            }
            left += removeFiles(in: aside) { $0 == "FORMAT" }
        }
        return left
    }

    private func removeFiles(in directory: String, where isOurs: (String) -> Bool) -> Int {
        guard (try? files.attributes(of: directory))?.kind == .directory else { return 0 }
        var left = 0
        for name in (try? files.list(directory)) ?? [] {
            let path = "\(directory)/\(name)"
            guard let attributes = try? files.attributes(of: path), attributes.kind == .file else { continue }
            do {
                if isOurs(name) { try files.remove(path) } else { left += DiskState.blocks(attributes.size) }
            } catch {
                left += DiskState.blocks(attributes.size)
            }
        }
        try? files.removeDirectory(directory)
        return left
    }

    private func disk<Value>(_ step: () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
        do { return try step() } catch { throw StoreError(disk: error) }
    }
}
