// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// Blobs: bodies too long for a record, each a file of its own that lives as long as a record points to it.
extension DiskEngine {
    /// Changes: makes room for bytes of a blob by reclaiming.
    ///
    /// - Parameters:
    ///   - isDeviceFull: whether the device itself refused them, so that at least one segment has to go.
    func makeRoomForBlob(_ bytes: Int, isDeviceFull: Bool = false) throws(StoreError) {
        try checkOpen()
        blobs.retryLeftovers()
        settleReleases()
        var search = RoomSearch(segments: log.withLock { $0.numbers.count })
        var owes = isDeviceFull
        while owes || !ledger.hasRoom(bytes, for: .caller) {
            if let spare = log.withLock({ $0.spare.take() }) {
                if discard(spare) {
                    owes = false
                    continue
                }
                // An empty segment that nobody knows of would look like one that lost its table.
                log.withLock { $0.spare = spare }
            }
            if !owes, let refusal = ledger.refusal(wanted: bytes, pinned: pins.sum, read: blobs.readBytes) {
                throw refusal
            }
            if owes, log.withLock({ $0.victim == nil }) { throw Self.noSpace }
            _ = try search.next(self, recyclingFor: nil, isDeviceFull: owes)
            owes = false
            settleReleases()
        }
    }

    /// Has room made for the next blob, where there is little: nobody waits for that.
    func makeRoomForBlobSoon(_ bytes: Int) {
        let bytes = min(2 * bytes, ledger.capacity / 64)
        guard ledger.capacity / geometry.segmentSize >= 32, !ledger.hasRoom(bytes, for: .caller),
            !isMakingRoom.exchange(true, ordering: .acquiringAndReleasing)
        else { return }
        let isTaken = threads.later(.changes) { [self] in
            isMakingRoom.store(false, ordering: .releasing)
            try? makeRoomForBlob(bytes)
        }
        if !isTaken { isMakingRoom.store(false, ordering: .releasing) }
    }

    /// Removes a segment that holds nothing; false when the device refuses.
    func discard(_ segment: Segment) -> Bool {
        guard (try? manifest.note(segment.number, is: .idle)) != nil,
            (try? files.removeIfThere(layout.segment(segment.number))) != nil
        else { return false }
        // A row that stays says only that the file may be gone.
        try? manifest.remove(segment.number)
        slots.free(segment.slot)
        segment.file.unlinked()
        return true
    }

    /// Notes that the blob of a row that leaves the index is to go; under the lock of its shard.
    func noteRelease(_ gone: GoneRow) {
        if gone.row.hasBlob { releases.withLock { $0.append(gone) } }
    }

    /// Has the blobs that are to go removed.
    func releaseSoon() {
        threads.later(.changes) { [self] in settleReleases() }
    }

    /// Changes: removes the blobs of entries that are gone; before any of their records is reclaimed.
    func settleReleases() {
        for gone in releases.withLock({ releases in
            defer { releases = [] }
            return releases
        }) {
            guard let segment = gone.segment, let header = header(of: gone.row, in: segment), header.hasBlob else {
                continue
            }
            blobs.remove(header.bodyWord, bytes: SpaceLedger.blocks(header.storedBlobBytes))
        }
    }

    private func header(of row: IndexRow, in segment: Segment) -> RecordHeader? {
        let count = Int(row.place.units) * 16
        guard let bytes = try? files.read(segment.file.open, from: Int(row.place.unit) * 16, count: count) else {
            return nil
        }
        let header = bytes.withUnsafeBytes { RecordHeader.decode($0, seed: seed) }
        return header?.segment == segment.number && header?.order == row.order ? header : nil
    }

    /// Runs a read of an open body on the thread of reads; in place once the store is closed, since bodies outlive it.
    func readBody<Value: Sendable>(
        _ work: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        do throws(StoreError) {
            return try await threads.run(.reads, work)
        } catch {
            guard error.code == .closed else { throw error }
            return try work()
        }
    }

    /// Opens the body of an entry that a look-up showed.
    func body(of source: RecordSource) async throws(StoreError) -> any StoredBody {
        guard source.header.hasBlob else {
            let bytes = try inlineBody(of: source)
            counters.bytesRead.add(bytes.count, ordering: .relaxed)
            return InlineBody(bytes)
        }
        if let held = blobs.held(source.header.bodyWord) { return BlobBody(engine: self, source: source, file: held) }
        let file = try await threads.run(.reads) { [self] () throws(StoreError) -> BlobFile in
            do throws(FileSystemError) {
                return try blobs.read(source.header.bodyWord, bytes: source.header.storedBlobBytes)
            } catch {
                if error.errno != SystemNumber.notFound { throw failed(error) }
                throw dropDamaged(source) ? Self.damaged : Self.gone
            }
        }
        return BlobBody(engine: self, source: source, file: file)
    }
}
