// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Takes the segments that recovery found into the log. Blocks.
struct SegmentOpening {
    let layout: StoreLayout
    let files: any FileSystem
    let ledger: SpaceLedger
    let seed: UInt64
    let epoch: UInt64
    let geometry: Geometry

    /// Opens the files, each in the slot that its position is.
    func open(
        _ found: [RecoveredStore.Segment],
        _ slots: SegmentSlots
    ) throws(StoreError) -> [Segment] {
        var all: [Segment] = []
        for segment in found {
            do {
                guard let slot = slots.take() else { throw DiskEngine.noSpace }
                let file = SegmentFile(
                    try files.open(layout.segment(segment.number), .readWrite),
                    bytes: SpaceLedger.blocks(segment.fileSize),
                    files: files,
                    ledger: ledger
                )
                let header = SegmentHeader(kind: segment.kind, number: segment.number, epoch: epoch, createdOrder: 0)
                let opened = Segment(header, slot: slot, file: file)
                slots.put(opened)
                all.append(opened)
            } catch let error as FileSystemError {
                throw StoreError(disk: error)
            } catch let error as StoreError {
                throw error
            } catch {
                throw StoreError(.io, "A segment of \(layout.root) cannot be opened.", cause: error)
            }
        }
        return all
    }

    /// Enters all segments in the log, and gives those that a crash left without a table theirs.
    func sealUnsealed(
        _ found: [RecoveredStore.Segment],
        _ all: [Segment],
        _ log: inout LogState
    ) throws(StoreError) {
        for (segment, found) in zip(all, found) {
            var entry = LogState.Sealed(segment: segment, blobBytes: found.blobBytes, isSynced: true)
            if !found.isSealed {
                entry.isSynced = false
                let table = SegmentTable.encode(
                    rows: found.rows,
                    blobs: found.blobRows,
                    segment: found.number,
                    tableOffset: found.tail,
                    seed: seed
                )
                let size = found.tail + table.count
                let growth = SpaceLedger.blocks(size) - segment.size
                do throws(FileSystemError) {
                    if growth <= 0 || ledger.grant(growth, for: .reclaimer) {
                        try files.write(ByteChunk(table), to: segment.file.open, at: found.tail)
                        try files.truncate(segment.file.open, to: size)
                        segment.file.resized(to: SpaceLedger.blocks(size))
                        if growth < 0 { ledger.release(-growth) }
                    } else {
                        (entry.rows, entry.blobs) = (found.rows, found.blobRows)
                    }
                } catch {
                    throw StoreError(disk: error)
                }
            }
            log.enter(entry)
        }
    }

    /// Goes on in the newest segment of each log where it is far from full, so that many short lives leave few files.
    func reopenNewest(_ log: inout LogState) {
        for kind in LogKind.allCases {
            guard let newest = log.newest(kind), newest.rows == nil, newest.segment.size < geometry.segmentSize / 2,
                let table = try? SegmentFileReader(files: files, seed: seed).table(of: newest.segment)
            else { continue }
            let growth = geometry.segmentSize - newest.segment.size
            guard ledger.grant(growth, for: .caller) else { continue }
            do {
                try files.allocate(newest.segment.file.open, size: geometry.segmentSize)
            } catch {
                ledger.release(growth)
                continue
            }
            newest.segment.file.resized(to: geometry.segmentSize)
            log.remove(newest.segment)
            var open = LogState.Open(segment: newest.segment, tail: table.offset)
            open.rows = table.rows
            open.blobs = table.blobs
            open.blobBytes = newest.blobBytes
            open.promisedRows = table.rows.count
            open.promisedBlobs = table.blobs.count
            log.begin(open, LogState.Destination(kind))
        }
    }
}

/// Reads the table of a segment whose file is open.
struct SegmentFileReader: Sendable {
    let files: any FileSystem
    let seed: UInt64

    /// What the table says, and where it begins.
    ///
    /// - Throws: `.corrupt` when it does not hold its checks.
    func table(of segment: Segment) throws(StoreError) -> (rows: [TableRow], blobs: [BlobRow], offset: Int) {
        let size: Int
        let last: [UInt8]
        do {
            size = try files.size(of: segment.file.open)
            let start = max(0, size - SegmentTable.footerSize)
            last = try files.read(segment.file.open, from: start, count: SegmentTable.footerSize)
        } catch {
            throw StoreError(disk: error)
        }
        guard let footer = SegmentTable.footer(last, segment: segment.number, seed: seed), footer.fileSize == size
        else {
            throw Self.damaged
        }
        let bytes: [UInt8]
        do {
            bytes = try files.read(segment.file.open, from: footer.tableOffset, count: footer.tableLength)
        } catch {
            throw StoreError(disk: error)
        }
        guard let table = SegmentTable.decode(bytes, footer: footer, seed: seed) else { throw Self.damaged }
        return (table.rows, table.blobs, footer.tableOffset)
    }

    private static let damaged = StoreError(
        .corrupt,
        "The table of a segment is damaged; what it holds stays until the store is opened again."
    )
}
