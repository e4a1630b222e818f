// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Reads what a directory holds while another process may change it, and changes nothing itself. Blocks.
///
/// The snapshot is what a crash at one instant would have left. That takes at least two looks where somebody writes:
///
/// - The first finds the highest order on the disk, the *cut*. What has this order or a lower one was written before the
///   second look begins, but for what nobody was told yet; so the second finds every removal that is older than an entry it shows.
/// - A look counts where each segment that was listed before it is there after it. Numbers are never used twice and a file that is
///   used again loses its old name first, so all of them were read as they were; and what was carried out of a segment, a tombstone
///   above all, was read there or where it went.
/// - Blobs are listed last: those of entries up to the cut are all there, unless their entries went meanwhile.
struct SnapshotTaking: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    let seal: (any StoreSeal)?

    /// How many looks are taken before it is said that the store changes too fast.
    private static let looks = 100

    /// Takes a snapshot.
    ///
    /// - Throws: `.badConfiguration` where the directory holds no store of this version; `.io`; `.resting` where it changes faster
    ///   than it can be read.
    func take() throws(StoreError) -> StoreSnapshot {
        var format = try readFormat()
        var known: [UInt64: Known] = [:]
        // Nothing changes in what was closed cleanly, or else its format does.
        var cut: UInt64? = format.isClean ? .max : nil
        for _ in 0..<Self.looks {
            let look = try disk { () throws(FileSystemError) in try self.look(format, &known) }
            let next = try readFormat()
            let isSame =
                format.isClean
                ? next == format : next.secret == format.secret && next.epoch == format.epoch && !next.isClean
            guard isSame else {
                (format, known, cut) = (next, [:], next.isClean ? .max : nil)
                continue
            }
            format = next
            guard let bound = cut else {
                cut = look.highestOrder
                continue
            }
            if look.isWhole { return try settle(look, format, upTo: bound) }
            cut = max(bound, look.highestOrder)
        }
        throw StoreError(.resting, "\(layout.root) changes faster than it can be read; try again when it is less busy.")
    }

    /// A sealed segment that was read, and the size of its file then: one that is opened anew grows.
    private struct Known {
        let content: SegmentReader.Content
        let size: Int
    }

    private struct Look {
        var contents: [StoreRecovery.Numbered] = []
        var damagedFiles = 0
        var highestOrder: UInt64 = 0
        /// Whether every segment listed before was there after.
        var isWhole = true
    }

    private func look(_ format: StoreFormat, _ known: inout [UInt64: Known]) throws(FileSystemError) -> Look {
        let reader = SegmentReader(files: files, format: format, seal: seal, passesSealed: true)
        let recovery = StoreRecovery(layout: layout, files: files, format: format, seal: seal)
        var look = Look()
        let listed = try recovery.sizes(in: layout.segments, suffix: StoreLayout.segmentSuffix)
        var sealed: [UInt64: Known] = [:]
        for (number, size) in listed.sorted(by: { $0.key < $1.key }) {
            if let known = known[number], known.size == size {
                sealed[number] = known
                look.contents.append(StoreRecovery.Numbered(number: number, content: known.content))
                continue
            }
            do throws(FileSystemError) {
                switch try reader.read(layout.segment(number), number: number) {
                case .segment(let content):
                    look.contents.append(StoreRecovery.Numbered(number: number, content: content))
                    if content.isSealed, content.fileSize == size {
                        sealed[number] = Known(content: content, size: size)
                    }
                case .void(let isDamaged):
                    if isDamaged { look.damagedFiles += 1 }
                }
            } catch {
                guard error.errno == SystemNumber.notFound else { throw error }
                look.isWhole = false
            }
        }
        look.highestOrder = look.contents.reduce(0) { max($0, $1.content.highestOrder) }
        let after = Set(try files.list(layout.segments))
        for number in listed.keys where !after.contains(FileNumber.name(number) + StoreLayout.segmentSuffix) {
            look.isWhole = false
        }
        known = sealed
        return look
    }

    private func settle(_ look: Look, _ format: StoreFormat, upTo cut: UInt64) throws(StoreError) -> StoreSnapshot {
        let holder = format.isClean ? nil : HolderNote.read(layout, files)
        var contents = look.contents
        for index in contents.indices where contents[index].content.highestOrder > cut {
            // What removes counts as soon as it is seen; what is put in belongs to a later instant.
            contents[index].content.rows.removeAll { $0.kind == .entry && $0.order > cut }
        }
        var found = RecoveredStore()
        found.damage.segments = look.damagedFiles
        while contents.count > Geometry.maximumSegments {
            contents.removeFirst()
            found.damage.segments += 1
        }
        let recovery = StoreRecovery(layout: layout, files: files, format: format, seal: seal)
        let blobs = try disk { () throws(FileSystemError) in
            try recovery.sizes(in: layout.blobs, suffix: StoreLayout.blobSuffix)
        }
        let index = ShardedIndex()
        try recovery.settle(contents, blobs: blobs, isHeld: holder != nil, &found) { number, rows throws(StoreError) in
            try index.shards[number].state.withLock { shard throws(StoreError) in _ = try shard.table.fill(rows) }
        }
        // A blob that is gone beside a store at work went with its entry.
        if holder != nil { found.damage.entries = 0 }
        return StoreSnapshot(found, format, index, holder: holder)
    }

    // MARK: The directory

    private func readFormat() throws(StoreError) -> StoreFormat {
        try checkRoot()
        let bytes = try disk { () throws(FileSystemError) -> [UInt8]? in
            guard let file = try files.openIfThere(layout.format) else { return nil }
            defer { files.close(file) }
            return try files.read(file, from: 0, count: StoreFormat.size + 1)
        }
        guard let bytes else {
            throw StoreError(.badConfiguration, "\(layout.root) holds no cache: it has no file FORMAT.")
        }
        guard let format = StoreFormat.decode(bytes) else {
            throw StoreError(.badConfiguration, "\(layout.format) is damaged or of another version of the disk format.")
        }
        return format
    }

    private func checkRoot() throws(StoreError) {
        guard layout.root.hasPrefix("/"), !layout.root.utf8.contains(0) else {
            throw StoreError(.badConfiguration, "\"\(layout.root)\" is no absolute path; name the directory in full.")
        }
        for path in [layout.root, layout.segments, layout.blobs] {
            guard let attributes = try disk({ () throws(FileSystemError) in try files.attributesIfThere(path) }) else {
                // A store that is being made has its format before its directories.
                throw StoreError(.badConfiguration, "There is no cache: \(path) is missing.")
            }
            guard attributes.kind == .directory else {
                throw StoreError(.unsafeDirectory, "\(path) is a link or a file; name a real directory.")
            }
            guard attributes.isOwn else {
                throw StoreError(.unsafeDirectory, "\(path) belongs to another user; read it as that user.")
            }
            guard attributes.permissions & 0o022 == 0 else {
                let message = "\(path) can be written by others; take that right away (chmod go-w)."
                throw StoreError(.unsafeDirectory, message)
            }
        }
    }

    private func disk<Value>(_ step: () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
        do { return try step() } catch { throw StoreError(disk: error) }
    }
}
