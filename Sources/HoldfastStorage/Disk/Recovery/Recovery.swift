// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What was found in a directory; the rows of the index went to the shards while it was read.
struct RecoveredStore: Sendable {
    /// A live segment.
    struct Segment: Sendable {
        let number: UInt64
        /// Its row in the list; nil if it is not listed.
        let row: SegmentRow?
        /// What is in its file; in the end, without the rows of a table.
        var content: SegmentReader.Content
        /// The bytes of the blob files that its entries name, and how many there are.
        var blobBytes = 0
        var blobCount = 0

        /// The random number in its header, or in the list if the header is damaged.
        var identity: UInt64 { content.identity ?? row?.identity ?? 0 }
    }

    /// A file with nothing that counts.
    struct VoidFile: Sendable, Hashable {
        let path: String
        let size: Int
    }

    /// How much was damaged.
    struct Damage: Sendable, Hashable {
        /// Segments that are missing or not the expected ones, with damage in header, table or marks, or partly unreadable.
        var segments = 0
        /// Entries whose blob has another size, or is missing after a clean close.
        var entries = 0
        /// Entries that were lost with the bodies of a damaged segment.
        var bodies = 0
    }

    /// By ascending number; a segment's slot is its position.
    var segments: [Segment] = []
    /// The bytes of the blob files that entries name, in whole blocks.
    var blobBlocks = 0
    var marks = PurgeMarks()
    /// Tombstones of entries that won and are void themselves. They must be written before any segment is reclaimed: an older
    /// entry must not come back once its record is gone.
    var missingTombstones: [Tombstone] = []
    /// The files to remove once the format is written.
    var void: [VoidFile] = []
    var damage = Damage()
    /// The order of the next record.
    var nextOrder: UInt64 = 1
    /// Entries of a lower order must be revalidated before they are used.
    var suspectBefore: UInt64 = 0
    /// The number of the next segment.
    var nextSegment: UInt64 = 1
    /// Higher than the number of every blob file and of every blob named in an intact record, including dead ones.
    var nextBlob: UInt64 = 1
}

/// Reads a directory of segments and blobs and decides what of it counts.
///
/// ``run(_:)`` changes nothing. The opener of a store then writes the format with the new ``RecoveredStore/suspectBefore``, and
/// removes the void files only after that: once a damaged file is gone, the next opening cannot see the damage.
///
/// If the system refuses access to a file, recovery throws instead of discarding good entries. Damage costs only the damaged
/// records, and if changes may be lost with it, every entry is suspect and must be revalidated before use.
///
/// Memory: 32 bytes a record while it runs, and 1 MiB while a segment without a table is scanned.
struct Recovery: Sendable {
    let layout: StoreLayout
    let files: any FileSystem
    /// FORMAT as the last process left it.
    let manifest: FormatFile
    /// Unseals the prefixes of marks that were sealed.
    var seal: (any StoreSeal)?
    /// Whether a store may be using the files, whose unfinished steps are not damage.
    var isHeld = false

    /// What was found so far.
    private(set) var store = RecoveredStore()

    /// Numbers from here on are not from a store: at a million segments a second, it would take two years to get there.
    static let numberLimit: UInt64 = 1 << 46

    private var format: StoreFormat { manifest.format }

    /// Reads everything, and passes the rows of each shard to `install`, by ascending fragment and variant.
    ///
    /// - Throws: `.io` if a directory or file that may be good cannot be read; any error of `install`.
    mutating func run(
        _ install: (_ shard: Int, _ rows: [IndexRow]) throws(StoreError) -> Void
    ) throws(StoreError) -> RecoveredStore {
        let blobs = try disk(try Self.sizes(in: layout.blobs, suffix: StoreLayout.blobSuffix, files))
        let unfinished = try disk(try Self.sizes(in: layout.segments, suffix: StoreLayout.temporarySuffix, files))
        for (number, size) in unfinished {
            store.void.append(.init(path: layout.segmentInTheMaking(number), size: size))
        }
        let found = try disk(try readSegments())
        return try resolve(found, blobs: blobs, install: install)
    }

    /// Decides what of these segment files and blobs counts, and passes the rows of each shard to `install`.
    ///
    /// - Parameters:
    ///   - found: by ascending number.
    ///   - blobs: the sizes of the blob files by number.
    mutating func resolve(
        _ found: [FoundFile],
        blobs: [UInt64: Int],
        install: (_ shard: Int, _ rows: [IndexRow]) throws(StoreError) -> Void
    ) throws(StoreError) -> RecoveredStore {
        var segments = compareWithList(found)
        decideDamage(&segments)
        determineOrders(segments)
        let runs = segments.enumerated().map { slot, segment in
            RecoveryMerge.Run(slot: UInt16(truncatingIfNeeded: slot), rows: segment.content.rows)
        }
        for mark in segments.flatMap(\.content.marks) {
            store.marks.add(mark.what, order: mark.order, horizon: mark.horizon)
        }
        var decisions = BlobDecisions(sizes: blobs, segments: segments.map(\.content.blobs), isClean: format.isClean)
        let numbers = segments.flatMap { $0.content.blobs.map(\.number) } + Array(blobs.keys)
        store.nextBlob = (numbers.filter { $0 < Self.numberLimit }.max() ?? 0) + 1
        // Those of a segment without a table are needed to write it.
        for index in segments.indices where segments[index].content.isSealed {
            (segments[index].content.rows, segments[index].content.blobs) = ([], [])
        }
        store.segments = segments
        try RecoveryMerge(runs).forEachShard { shard, winners throws(StoreError) in
            let rows = winners.compactMap { decisions.decide($0, store: &store) }
            try install(shard, rows)
        }
        for (number, size) in blobs {
            if decisions.named.contains(number) {
                store.blobBlocks = store.blobBlocks.addingSaturated(SpaceQuota.blocks(size))
            } else {
                store.void.append(.init(path: layout.blob(number), size: size))
            }
        }
        return store
    }

    // MARK: Segments

    /// A segment's file and its contents.
    struct FoundFile: Sendable {
        let number: UInt64
        let size: Int
        /// Nil if nothing in it counts.
        var content: SegmentReader.Content?
    }

    private func readSegments() throws(FileSystemError) -> [FoundFile] {
        let reader = SegmentReader(files: files, format: format, seal: seal)
        var found: [FoundFile] = []
        let sizes = try Self.sizes(in: layout.segments, suffix: StoreLayout.segmentSuffix, files)
        for (number, size) in sizes.sorted(by: { $0.key < $1.key }) {
            // Not from a store, and not read.
            let isStray = number >= Self.numberLimit
            let content = isStray ? nil : try reader.read(layout.segment(number), number: number)
            found.append(FoundFile(number: number, size: size, content: content))
        }
        return found
    }

    /// Compares the segments that exist with those that must exist.
    ///
    /// A segment is listed once it has its header and its name; it is listed as idle until it gets records, and again when its file
    /// is about to be removed. So after a kill at any instant, nothing is missing, and unlisted segments are empty; otherwise,
    /// files were lost, swapped or added, and entries that they killed may be back.
    private mutating func compareWithList(_ found: [FoundFile]) -> [RecoveredStore.Segment] {
        let listed = Dictionary(manifest.rows.values.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
        var missing = Set(listed.values.filter { $0.state != .idle }.map(\.number))
        var segments: [RecoveredStore.Segment] = []
        var (unlisted, strays, others) = (0, 0, 0)
        for file in found {
            let row = listed[file.number]
            guard let content = file.content, file.number < Self.numberLimit else {
                store.void.append(.init(path: layout.segment(file.number), size: file.size))
                continue
            }
            missing.remove(file.number)
            if let row {
                if let identity = content.identity, identity != row.identity { others += 1 }
            } else if !isHeld {
                unlisted += 1
                guard !content.rows.isEmpty || !content.torn.isEmpty || content.isSealed else {
                    store.void.append(.init(path: layout.segment(file.number), size: file.size))
                    continue
                }
                strays += 1
            }
            segments.append(.init(number: file.number, row: row, content: content))
        }
        let highest = max(segments.last?.number ?? 0, listed.keys.max() ?? 0)
        store.nextSegment = highest == .max ? .max : highest + 1
        // No store writes that many; the oldest are dropped, and changes with them.
        while segments.count > Geometry.maximumSegments {
            let first = segments.removeFirst()
            others += 1
            store.void.append(.init(path: layout.segment(first.number), size: first.content.fileSize))
        }
        if isHeld { return segments }
        // A damaged row stands for one existing segment, or else for a missing one.
        let lostRows = manifest.damagedRows.count
        store.damage.segments += missing.count + others + max(0, strays - lostRows) + max(0, lostRows - unlisted)
        return segments
    }

    /// Distinguishes damage from the traces of a crash, and counts it.
    private mutating func decideDamage(_ segments: inout [RecoveredStore.Segment]) {
        for index in segments.indices where !isHeld && !segments[index].content.isSealed {
            // A file has its full size before its first record; sealing cuts it. One that had its table still has it.
            let hadTable =
                format.isClean || segments[index].row?.state == .sealed
                || segments[index].content.fileSize != format.segmentSize
            guard hadTable || segments[index].content.isDamaged else { continue }
            segments[index].content.isDamaged = true
            // A slow write may be in progress in a segment of any age; only a file that certainly had its table was complete.
            guard hadTable else { continue }
            // They were acknowledged once: although void, they still supersede older ones.
            store.damage.bodies += segments[index].content.torn.count
            segments[index].content.rows += segments[index].content.torn
            segments[index].content.rows.sort { $0.precedes($1) }
        }
        store.damage.segments += segments.count { $0.content.isDamaged }
    }

    private mutating func determineOrders(_ segments: [RecoveredStore.Segment]) {
        let highest = segments.reduce(0) { max($0, $1.content.highestOrder) }
        let (next, overflow) = highest.addingReportingOverflow(1)
        store.nextOrder = max(format.nextOrder, format.suspectBefore, overflow ? .max : next, 1)
        store.suspectBefore = segments.reduce(format.suspectBefore) { max($0, $1.content.suspectBefore) }
        let identity = Array(files.bootIdentity.prefix(StoreFormat.bootIdentityLimit))
        let isSameBoot = !identity.isEmpty && identity == format.bootIdentity
        if store.damage.segments > 0 || !(format.isClean || isSameBoot) { store.suspectBefore = store.nextOrder }
    }

    // MARK: Files

    /// The files of a directory whose names are numbers; others stay.
    static func sizes(
        in directory: String,
        suffix: String,
        _ files: any FileSystem
    ) throws(FileSystemError) -> [UInt64: Int] {
        var sizes: [UInt64: Int] = [:]
        for name in try files.list(directory) {
            guard let number = FileNumber.number(in: name, suffix: suffix) else { continue }
            guard let attributes = try files.attributesIfThere("\(directory)/\(name)") else { continue }
            if attributes.kind == .file { sizes[number] = attributes.size }
        }
        return sizes
    }

    /// Removes the files that ``run(_:)`` found void.
    ///
    /// - Returns: those that still exist.
    func sweep(_ files: [RecoveredStore.VoidFile]) -> [RecoveredStore.VoidFile] {
        files.filter { file in (try? self.files.removeIfThere(file.path)) == nil }
    }
}

/// Decides during recovery whether the body of a winning entry exists, and records which blobs are named.
///
/// An entry that has lost its blob becomes void only after it has won: the older entry that it superseded stays gone.
struct BlobDecisions {
    private let sizes: [UInt64: Int]
    /// By slot and place, packed: the slot above 32 bits of place.
    private var rows: [UInt64: BlobRow] = [:]
    /// The blobs that entries need.
    private(set) var named: Set<UInt64> = []
    private let isClean: Bool

    /// Decisions from the sizes of the blob files by number, the blob rows of the segments by slot, and whether the store was
    /// closed cleanly.
    init(sizes: [UInt64: Int], segments: [[BlobRow]], isClean: Bool) {
        (self.sizes, self.isClean) = (sizes, isClean)
        for (slot, blobs) in segments.enumerated() {
            for blob in blobs { rows[Self.key(slot, place: blob.place)] = blob }
        }
    }

    /// The row for the index; nil if the entry is void: it needs a tombstone, or the next opening would find it again.
    mutating func decide(_ winner: RecoveryMerge.Winner, store: inout RecoveredStore) -> IndexRow? {
        let row = winner.row
        guard row.hasBlob else { return row }
        let slot = Int(row.place.slot)
        let blob = rows[Self.key(slot, place: row.place.unit)]
        if let blob, let size = sizes[blob.number], UInt64(exactly: size) == blob.storedBytes,
            named.insert(blob.number).inserted
        {
            store.segments[slot].blobBytes = store.segments[slot].blobBytes.addingSaturated(size)
            store.segments[slot].blobCount += 1
            return row
        }
        // A kill may come after the blobs of evicted entries were removed, and before their segment was.
        if isClean || blob.map({ sizes[$0.number] != nil }) ?? true { store.damage.entries += 1 }
        store.missingTombstones.append(
            .init(kind: .variantTombstone, order: row.order, primary: winner.primary, variant: row.variant)
        )
        return nil
    }

    private static func key(_ slot: Int, place: UInt32) -> UInt64 {
        UInt64(truncatingIfNeeded: slot) << 32 | UInt64(place)
    }
}

/// Finds, among all records of all segments, the one of each identity that counts.
///
/// Of one identity, the entry of the highest order wins, unless a tombstone of its variant or of its primary key has that order or
/// a higher one. Equal orders are copies of one record; the one in the highest slot is taken. A winner shadows if any other record
/// of its identity was seen: evicting it must leave a tombstone, or that one would come back.
///
/// An identity is what the index can distinguish: shard, fragment and variant. Keys that agree in these displace each other in the
/// index, so they must do so here too, or a displaced entry could outlive its removal.
///
/// The rows of all segments are in memory while it runs, 32 bytes each; in addition, it holds the rows of one shard. Cost: some 50
/// ns a row.
struct RecoveryMerge {
    /// The rows of one segment, sorted as ``SegmentTable`` sorts them.
    struct Run {
        /// The segment's position in the list of segments, which is in ascending order of their numbers.
        let slot: UInt16
        let rows: [TableRow]
    }

    /// An entry that counts.
    struct Winner: Sendable, Hashable {
        /// The hash of its primary key.
        let primary: UInt64
        /// Its row for the index.
        let row: IndexRow
    }

    private let runs: [Run]

    /// A fold of these runs, which may come in any order.
    init(_ runs: [Run]) { self.runs = runs }

    /// Calls `body` for each shard in turn with its winners, ordered by fragment and variant; stops at the first error.
    func forEachShard<Failure: Error>(
        _ body: (_ shard: Int, _ winners: [Winner]) throws(Failure) -> Void
    ) throws(Failure) {
        var positions = [Int](repeating: 0, count: runs.count)
        var items: [Item] = []
        var sorter = Sorter()
        var winners: [Winner] = []
        for shard in 0..<ShardedIndex.count {
            items.removeAll(keepingCapacity: true)
            winners.removeAll(keepingCapacity: true)
            for index in runs.indices {
                positions[index] = take(shard, of: runs[index], from: positions[index], items: &items)
            }
            sorter.sort(items)
            Self.resolve(items, keys: sorter.keys, winners: &winners)
            try body(shard, winners)
        }
    }

    private func take(_ shard: Int, of run: Run, from start: Int, items: inout [Item]) -> Int {
        var position = start
        while position < run.rows.count {
            let row = run.rows[position]
            guard ShardedIndex.number(of: row.primary) == shard else { break }
            position += 1
            // Marks kill by tag or prefix and are irrelevant here.
            if row.kind == .tagMark || row.kind == .prefixMark { continue }
            items.append(Item(row: row, slot: run.slot))
        }
        return position
    }

    private static func resolve(_ items: [Item], keys: [UInt64], winners: inout [Winner]) {
        func item(_ place: Int) -> Item { items[Sorter.index(keys[place])] }
        var start = 0
        while start < keys.count {
            // All variants of one primary key, whose tombstones cover orders up to `killed`.
            let fragment = item(start).fragment
            var end = start
            var killed: UInt64 = 0
            while end < keys.count, item(end).fragment == fragment {
                if item(end).row.kind == .primaryTombstone { killed = max(killed, item(end).row.order) }
                end += 1
            }
            while start < end {
                let variant = item(start).row.variant
                var (killed, entries, last) = (killed, 0, start)
                while start < end, item(start).row.variant == variant {
                    let row = item(start).row
                    if row.kind == .entry {
                        entries += 1
                        last = start
                    } else if row.kind == .variantTombstone {
                        killed = max(killed, row.order)
                    }
                    start += 1
                }
                guard entries > 0, item(last).row.order > killed else { continue }
                winners.append(winner(item(last), shadows: entries > 1))
            }
        }
    }

    private static func winner(_ item: Item, shadows: Bool) -> Winner {
        let row = item.row
        return Winner(
            primary: row.primary,
            row: IndexRow(
                fragment: ShardedIndex.fragment(of: row.primary),
                variant: row.variant,
                place: RecordLocation(slot: item.slot, unit: row.place, units: row.units),
                order: row.order,
                isPinned: row.isPinned,
                hasBlob: row.hasBlob,
                shadows: shadows
            )
        )
    }
}

extension RecoveryMerge {
    /// A record and its place.
    private struct Item {
        let row: TableRow
        let slot: UInt16

        var fragment: UInt64 { ShardedIndex.fragment(of: row.primary) }
        /// The upper bits of the fragment.
        var bits: UInt32 { UInt32(truncatingIfNeeded: fragment >> UInt64(IndexRow.fragmentBits - 32)) }

        /// By fragment, variant, order and slot; the place makes the order total.
        func precedes(_ other: Item) -> Bool {
            if fragment != other.fragment { return fragment < other.fragment }
            if row.variant != other.row.variant { return row.variant < other.row.variant }
            if row.order != other.row.order { return row.order < other.row.order }
            return slot != other.slot ? slot < other.slot : row.place < other.row.place
        }
    }

    /// Orders the items of a shard without moving them: a key is 32 bits of the fragment above the item's index.
    ///
    /// It distributes the keys to as many buckets as there are items: fragments are hashes, so most buckets contain one or two.
    private struct Sorter {
        private(set) var keys: [UInt64] = []
        private var ends: [UInt32] = []

        static func index(_ key: UInt64) -> Int { Int(truncatingIfNeeded: key & 0xFFFF_FFFF) }

        mutating func sort(_ items: [Item]) {
            let bits = min(max(1, Int.bitWidth - items.count.leadingZeroBitCount), 24)
            let shift = UInt32(32 - bits)
            ends.removeAll(keepingCapacity: true)
            ends.append(contentsOf: repeatElement(0, count: 1 << bits))
            for item in items { ends[Int(item.bits >> shift)] += 1 }
            var sum: UInt32 = 0
            for index in ends.indices {
                let count = ends[index]
                ends[index] = sum
                sum += count
            }
            keys.removeAll(keepingCapacity: true)
            keys.append(contentsOf: repeatElement(0, count: items.count))
            for (index, item) in items.enumerated() {
                let bucket = Int(item.bits >> shift)
                keys[Int(ends[bucket])] = UInt64(item.bits) << 32 | UInt64(truncatingIfNeeded: index)
                ends[bucket] += 1
            }
            var start = 0
            for end in ends {
                if Int(end) - start > 1 { order(start..<Int(end), items: items) }
                start = Int(end)
            }
        }

        private mutating func order(_ range: Range<Int>, items: [Item]) {
            func precedes(_ left: UInt64, _ right: UInt64) -> Bool {
                if left >> 32 != right >> 32 { return left < right }
                return items[Self.index(left)].precedes(items[Self.index(right)])
            }
            // A key that was written again and again fills one bucket alone.
            guard range.count <= 16 else { return keys[range].sort(by: precedes) }
            for end in range.dropFirst() {
                var index = end
                while index > range.lowerBound, precedes(keys[index], keys[index - 1]) {
                    keys.swapAt(index, index - 1)
                    index -= 1
                }
            }
        }
    }
}
