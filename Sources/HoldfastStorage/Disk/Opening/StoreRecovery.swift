// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads a directory of segments and blobs and decides what of it counts.
///
/// ``run(_:)`` changes nothing. Whoever opens a store then writes the format with the new ``RecoveredStore/suspectBefore``,
/// and removes the void files only after that: a damaged file that is gone tells the next opening of no damage.
///
/// Where the system refuses to show a file, recovery throws rather than that good entries are thrown away. What is damaged
/// costs its own records, and where changes may be lost with it, every entry is suspect: to be revalidated before use.
///
/// Memory: 32 bytes a record while it runs, and 1 MiB while a segment without a table is scanned.
struct StoreRecovery: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    /// The format as the last process left it.
    let format: StoreFormat
    /// What opens the prefixes of marks that were sealed.
    var seal: (any StoreSeal)?

    /// Segments of a kind that may lack their table after a crash: the one made in advance, and of callers and of the reclaimer the
    /// one that is written and the one being sealed.
    private static let unsealedOfKind = 5

    /// Reads everything, and hands the rows of each shard to `install`, by ascending fragment and variant.
    ///
    /// - Throws: `.io` where a directory or file cannot be read that may be good; what `install` throws.
    func run(
        _ install: (_ shard: Int, _ rows: [IndexRow]) throws(StoreError) -> Void
    ) throws(StoreError) -> RecoveredStore {
        var store = RecoveredStore()
        let blobs = try disk { () throws(FileSystemError) in
            try sizes(in: layout.blobs, suffix: StoreLayout.blobSuffix)
        }
        let contents = try disk { () throws(FileSystemError) in try readSegments(&store) }
        try settle(contents, blobs: blobs, &store, install)
        return store
    }

    /// Decides what of these segments and blobs counts, and hands the rows of each shard to `install`.
    ///
    /// - Parameters:
    ///   - contents: by ascending number.
    ///   - blobs: the sizes of the blob files by number.
    ///   - isHeld: whether a store may be at work on them, whose unfinished steps are no damage.
    func settle(
        _ contents: [Numbered],
        blobs: [UInt64: Int],
        isHeld: Bool = false,
        _ store: inout RecoveredStore,
        _ install: (_ shard: Int, _ rows: [IndexRow]) throws(StoreError) -> Void
    ) throws(StoreError) {
        var contents = contents
        judgeDamage(&contents, isHeld: isHeld, &store)
        settleOrders(contents, &store)
        let runs = contents.enumerated().map { slot, content in
            RecoveryFold.Run(slot: UInt16(truncatingIfNeeded: slot), rows: content.content.rows)
        }
        store.segments = contents.map(Self.segment)
        for mark in contents.flatMap(\.content.marks) { Self.add(mark, to: &store.marks) }
        var judge = BlobJudge(sizes: blobs, segments: contents.map(\.content.blobs))
        let highestBlob = contents.flatMap(\.content.blobs).reduce(blobs.keys.max() ?? 0) { max($0, $1.number) }
        store.nextBlob = highestBlob == .max ? .max : highestBlob + 1
        contents = []
        try RecoveryFold(runs).forEachShard { shard, winners throws(StoreError) in
            let rows = winners.compactMap { judge.judge($0, &store) }
            store.entries += rows.count
            try install(shard, rows)
        }
        for (number, size) in blobs {
            if judge.named.contains(number) {
                store.blobBlocks += SpaceLedger.blocks(size)
            } else {
                store.void.append(RecoveredStore.VoidFile(path: layout.blob(number), size: size))
            }
        }
    }

    // MARK: Segments

    /// What one segment file holds.
    struct Numbered: Sendable {
        let number: UInt64
        var content: SegmentReader.Content
    }

    private func readSegments(_ store: inout RecoveredStore) throws(FileSystemError) -> [Numbered] {
        let reader = SegmentReader(files: files, format: format, seal: seal)
        var all: [Numbered] = []
        let found = try sizes(in: layout.segments, suffix: StoreLayout.segmentSuffix)
        for (number, size) in try sizes(in: layout.segments, suffix: StoreLayout.temporarySuffix) {
            store.void.append(RecoveredStore.VoidFile(path: layout.segmentInTheMaking(number), size: size))
        }
        let highest = found.keys.max() ?? 0
        store.nextSegment = highest == .max ? .max : highest + 1
        for (number, size) in found.sorted(by: { $0.key < $1.key }) {
            switch try reader.read(layout.segment(number), number: number) {
            case .segment(let content): all.append(Numbered(number: number, content: content))
            case .void(let isDamaged):
                if isDamaged { store.damage.segments += 1 }
                store.void.append(RecoveredStore.VoidFile(path: layout.segment(number), size: size))
            }
        }
        // No store writes as many; the oldest go, and changes with them.
        while all.count > Geometry.maximumSegments {
            let first = all.removeFirst()
            store.damage.segments += 1
            store.void.append(RecoveredStore.VoidFile(path: layout.segment(first.number), size: first.content.fileSize))
        }
        return all
    }

    /// Tells damage from what a crash leaves, and counts it.
    private func judgeDamage(_ all: inout [Numbered], isHeld: Bool, _ store: inout RecoveredStore) {
        for kind in LogKind.allCases where !isHeld {
            // One made in advance has no records yet and is none of those that wait for a table; a clean close leaves none.
            let ofKind = all.indices.filter { index in
                let content = all[index].content
                let isSpare = content.isUnused && !format.isClean && content.fileSize == format.segmentSize
                return content.kind == kind && !isSpare
            }
            for (age, index) in ofKind.reversed().enumerated() where !all[index].content.isSealed {
                // A file has its whole size before its first record; sealing cuts it.
                let wasSealed =
                    format.isClean || age >= Self.unsealedOfKind || all[index].content.fileSize != format.segmentSize
                guard wasSealed || all[index].content.isDamaged else { continue }
                all[index].content.isDamaged = true
                // A write that was slow may be under way in a segment of any age; only a file that surely had its table was whole.
                guard format.isClean || all[index].content.fileSize != format.segmentSize else { continue }
                // Acknowledged once: void as they are, they still supersede what is older.
                store.damage.bodies += all[index].content.torn.count
                all[index].content.rows += all[index].content.torn
                all[index].content.rows.sort { $0.precedes($1) }
            }
        }
        store.damage.segments += all.count { $0.content.isDamaged }
    }

    private func settleOrders(_ all: [Numbered], _ store: inout RecoveredStore) {
        let highest = all.reduce(0) { max($0, $1.content.highestOrder) }
        let (next, overflow) = highest.addingReportingOverflow(1)
        store.nextOrder = max(format.nextOrder, format.suspectBefore, overflow ? .max : next, 1)
        store.suspectBefore = format.suspectBefore
        let identity = Array(files.bootIdentity.prefix(StoreFormat.bootIdentityLimit))
        let isSameBoot = !identity.isEmpty && identity == format.bootIdentity
        if store.damage.segments > 0 || !(format.isClean || isSameBoot) { store.suspectBefore = store.nextOrder }
    }

    private static func segment(_ numbered: Numbered) -> RecoveredStore.Segment {
        let content = numbered.content
        return RecoveredStore.Segment(
            number: numbered.number,
            kind: content.kind,
            fileSize: content.fileSize,
            highestOrder: content.highestOrder,
            isSealed: content.isSealed,
            tail: content.tail,
            rows: content.isSealed ? [] : content.rows,
            blobRows: content.isSealed ? [] : content.blobs,
            isDamaged: content.isDamaged
        )
    }

    private static func add(_ mark: SegmentReader.Mark, to marks: inout PurgeMarks) {
        if mark.kind == .tagMark {
            marks.add(tag: mark.tag, order: mark.order, horizon: mark.horizon)
        } else {
            marks.add(prefix: mark.prefix, order: mark.order, horizon: mark.horizon)
        }
    }

    // MARK: Files

    /// The files of a directory that bear a number; whatever else lies there stays.
    func sizes(in directory: String, suffix: String) throws(FileSystemError) -> [UInt64: Int] {
        var sizes: [UInt64: Int] = [:]
        for name in try files.list(directory) {
            guard let number = FileNumber.number(in: name, suffix: suffix) else { continue }
            guard let attributes = try files.attributesIfThere("\(directory)/\(name)") else { continue }
            if attributes.kind == .file { sizes[number] = attributes.size }
        }
        return sizes
    }

    /// Removes what ``run(_:)`` found void.
    ///
    /// - Returns: what is still there.
    func sweep(_ files: [RecoveredStore.VoidFile]) -> [RecoveredStore.VoidFile] {
        files.filter { file in (try? self.files.removeIfThere(file.path)) == nil }
    }

    private func disk<Value>(_ step: () throws(FileSystemError) -> Value) throws(StoreError) -> Value {
        do { return try step() } catch { throw StoreError(disk: error) }
    }
}
