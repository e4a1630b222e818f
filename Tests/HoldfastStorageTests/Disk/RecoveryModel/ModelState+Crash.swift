// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

@testable import HoldfastStorage

/// The end of the process at any moment, and what the next one makes of the files.
extension ModelState {
    /// A crash in which the flights of `landed`, one bit each, reached the disk; then recovery.
    mutating func crash(landed: Int) {
        for (index, pendingWrite) in pendingWrites.enumerated()
        where pendingWrite.segment != 0 && landed >> index & 1 == 1 {
            write(pendingWrite)
            switch pendingWrite.kind {
            case .removal, .mark: acknowledgeKill(pendingWrite.record)
            case .put, .freshen, .carry, .evictionTombstone, .purgeAll: break
            }
        }
        segments.removeAll { $0.epoch < formatEpoch }
        epoch = formatEpoch
        pendingWrites = []
        reclaims = []
        uncertain = []
        postponed = []
        active = [0, 0]
        nextSegment = (segments.map(\.number).max() ?? 0) + 1
        marks = segments.flatMap { $0.records.compactMap(\.self) }.filter {
            $0.kind == .tagMark || $0.kind == .prefixMark
        }
        for identity in 0..<ModelPromises.identities { rows[Int(identity)] = recovered(identity) }
        let named = Set(rows.compactMap { $0?.record.blob })
        blobs.removeAll { !named.contains($0.number) }
    }

    /// After the state was judged: what is seen now holds from here on.
    mutating func settle() {
        if promises.purgeAllBegun {
            promises.purgeAllBegun = false
            for index in promises.of.indices { promises.of[index].killed = nextOrder - 1 }
        }
        for identity in 0..<ModelPromises.identities {
            let row = rows[Int(identity)].flatMap { isMarked($0.record) ? nil : $0.record }
            promises.settle(identity, sees: row?.order)
        }
        promises.tagKillBegun = promises.tagKilled
    }

    /// The winner among all records of an identity.
    private func recovered(_ identity: UInt8) -> ModelRow? {
        var winner: ModelRow?
        var killed: UInt8 = 0
        var count = 0
        var lowest = UInt8.max
        for segment in segments.sorted(by: { $0.number < $1.number }) {
            for (place, record) in segment.records.enumerated() {
                guard let record else { continue }
                switch record.kind {
                case .entry where record.subject == identity:
                    count += 1
                    lowest = min(lowest, record.order)
                    guard record.order >= winner?.record.order ?? 0 else { continue }
                    winner = ModelRow(segment: segment.number, place: UInt8(place), record: record)
                case .variantTombstone where record.subject == identity: killed = max(killed, record.order)
                case .keyTombstone where record.subject == ModelPromises.key(identity):
                    killed = max(killed, record.order)
                case .entry, .variantTombstone, .keyTombstone, .tagMark, .prefixMark: continue
                }
            }
        }
        guard var winner, winner.record.order > killed else { return nil }
        // A second copy counts as well: evicting one of them must not leave the other behind.
        winner.shadows = lowest < winner.record.order || (count > 1 && !omits.contains(.copyShadows))
        let blob = winner.record.blob
        // Void entries are dropped after the winner is known: an older version never stands in for one.
        return blob == 0 || blobs.contains { $0.number == blob } ? winner : nil
    }

    /// The winners as the store's own fold finds them: identity, order, whether it shadows, and the segment.
    var folded: Set<[UInt64]> {
        let ordered = segments.sorted { $0.number < $1.number }
        let runs = ordered.enumerated().map { slot, segment in
            let rows = segment.records.enumerated().compactMap { place, record in
                record.map { Self.row($0, place: UInt32(place)) }
            }
            return RecoveryMerge.Run(slot: UInt16(slot), rows: rows.sorted { $0.precedes($1) })
        }
        var found: Set<[UInt64]> = []
        RecoveryMerge(runs).forEachShard { _, winners in
            for winner in winners {
                let number = UInt64(ordered[Int(winner.row.place.slot)].number)
                let identity = winner.primary << 1 | UInt64(winner.row.variant)
                found.insert([identity, winner.row.order, winner.row.shadows ? 1 : 0, number])
            }
        }
        return found
    }

    /// The same of the rows of a state that was just reopened, void winners left out on both sides.
    var reopenedRows: Set<[UInt64]> {
        Set(
            rows.compactMap { row in
                row.map {
                    [UInt64($0.record.subject), UInt64($0.record.order), $0.shadows ? 1 : 0, UInt64($0.segment)]
                }
            }
        )
    }

    private static func row(_ record: ModelRecord, place: UInt32) -> TableRow {
        let kinds: [ModelRecord.Kind: RecordKind] = [
            .keyTombstone: .primaryTombstone, .variantTombstone: .variantTombstone, .tagMark: .tagMark,
            .prefixMark: .prefixMark,
        ]
        let isKey = record.kind == .keyTombstone
        return TableRow(
            primary: UInt64(isKey ? record.subject : ModelPromises.key(record.subject)),
            variant: isKey ? 0 : UInt32(record.subject % 2),
            place: place,
            order: UInt64(record.order),
            units: 7,
            kind: kinds[record.kind] ?? .entry
        )
    }
}
