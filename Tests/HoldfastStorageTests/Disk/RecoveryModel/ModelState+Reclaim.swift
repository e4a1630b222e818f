// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

@testable import HoldfastStorage

/// Reclaim and purge-all, step by step.
extension ModelState {
    /// Takes the oldest segment of a log; false when there is none to take.
    mutating func beginReclaim(main isMain: Bool) -> Bool {
        guard reclaims.isEmpty || omits.contains(.serialReclaim) else { return false }
        let candidates = segments.filter { $0.isMain == isMain && $0.epoch == epoch }
        guard let oldest = candidates.min(by: { $0.number < $1.number }),
            !reclaims.contains(where: { $0.segment == oldest.number }),
            !pendingWrites.contains(where: { $0.segment == oldest.number })
        else { return false }
        if active[isMain ? 1 : 0] == oldest.number { active[isMain ? 1 : 0] = 0 }
        reclaims.append(ModelReclaim(segment: oldest.number))
        return true
    }

    /// Whether all records of the segment have been judged.
    func isDecided(_ reclaim: ModelReclaim) -> Bool {
        guard let segment = segments.first(where: { $0.number == reclaim.segment }) else { return true }
        return Int(reclaim.cursor) >= segment.records.count
    }

    /// Judges the next record of the segment.
    mutating func stepReclaim(_ index: Int) {
        let number = reclaims[index].segment
        let place = reclaims[index].cursor
        reclaims[index].cursor += 1
        guard let segment = segments.first(where: { $0.number == number }),
            let record = segment.records[Int(place)]
        else { return }
        guard record.kind == .entry else {
            let horizon = TombstoneHorizon(segments: segments.map { UInt64($0.number) }, reclaimed: UInt64(number))
            if horizon.carries(UInt64(record.horizon)), !omits.contains(.horizon) {
                start(ModelPendingWrite(kind: .carry, record: record, reclaim: number), inMain: true, placed: true)
            }
            return
        }
        guard let row = rows[Int(record.subject)], row.segment == number, row.place == place else { return }
        if row.wasHit || row.record.isPinned, !isMarked(row.record) {
            let pendingWrite = ModelPendingWrite(kind: .carry, record: row.record, reclaim: number)
            start(pendingWrite, inMain: true, placed: !omits.contains(.carryUnderLock))
        } else {
            evict(row, from: index)
        }
    }

    private mutating func evict(_ row: ModelRow, from index: Int) {
        let record = row.record
        rows[Int(record.subject)] = nil
        promises.of[Int(record.subject)].evicted = max(promises.of[Int(record.subject)].evicted, record.order)
        if record.blob != 0 {
            if omits.contains(.blobAfterSegment) {
                unlink(blob: record.blob)
            } else {
                reclaims[index].blobs.append(record.blob)
            }
        }
        guard row.shadows, !omits.contains(.shadowTombstone) else { return }
        let order = omits.contains(.evictionKeepsOrder) ? takeOrder() : record.order
        let tombstone = ModelRecord(kind: .variantTombstone, subject: record.subject, order: order)
        let pendingWrite = ModelPendingWrite(
            kind: .evictionTombstone,
            record: tombstone,
            reclaim: reclaims[index].segment
        )
        start(pendingWrite, inMain: true, placed: true)
    }

    /// Points the row at a copy that is written.
    mutating func publishCarried(_ pendingWrite: ModelPendingWrite) {
        guard pendingWrite.record.kind == .entry, let row = rows[Int(pendingWrite.record.subject)],
            row.segment == pendingWrite.reclaim, row.record.order == pendingWrite.record.order
        else { return }
        rows[Int(pendingWrite.record.subject)]?.segment = pendingWrite.segment
        rows[Int(pendingWrite.record.subject)]?.place = pendingWrite.place
        rows[Int(pendingWrite.record.subject)]?.wasHit = false
    }

    func canEndReclaim(_ index: Int) -> Bool {
        guard isDecided(reclaims[index]), postponed.isEmpty else { return false }
        if !omits.contains(.removalBeforeUnlink), pendingWrites.contains(where: { $0.kind == .removal }) {
            return false
        }
        return omits.contains(.writeBeforeUnlink) || !pendingWrites.contains { $0.reclaim == reclaims[index].segment }
    }

    /// Unlinks the segment and what only it pointed to.
    mutating func endReclaim(_ index: Int) {
        let reclaim = reclaims.remove(at: index)
        segments.removeAll { $0.number == reclaim.segment }
        for blob in reclaim.blobs where omits.contains(.namedBlobs) || !isNamed(blob: blob) { unlink(blob: blob) }
        let lowest = segments.map(\.number).min() ?? .max
        marks.removeAll { $0.horizon < lowest }
    }

    mutating func beginPurgeAll() {
        let order = takeOrder()
        if omits.contains(.epochFirst) {
            empty(epoch: formatEpoch + 1)
            for index in promises.of.indices { promises.of[index].killBegun = order }
        } else {
            formatEpoch += 1
            promises.purgeAllBegun = true
        }
        pendingWrites.append(
            ModelPendingWrite(kind: .purgeAll, record: ModelRecord(kind: .keyTombstone, subject: 0, order: order))
        )
    }

    mutating func finishPurgeAll(_ pendingWrite: ModelPendingWrite) {
        var order = pendingWrite.record.order
        if omits.contains(.epochFirst) {
            formatEpoch = epoch
        } else {
            order = takeOrder()
            empty(epoch: formatEpoch)
        }
        promises.purgeAllBegun = false
        segments.removeAll { $0.epoch < formatEpoch }
        for index in promises.of.indices { promises.of[index].killed = max(promises.of[index].killed, order) }
    }

    private mutating func empty(epoch: UInt8) {
        for row in rows { if let blob = row?.record.blob, blob != 0 { unlink(blob: blob) } }
        rows = rows.map { _ in nil }
        pendingWrites = []
        marks = []
        reclaims = []
        uncertain = []
        postponed = []
        active = [0, 0]
        self.epoch = epoch
    }
}
