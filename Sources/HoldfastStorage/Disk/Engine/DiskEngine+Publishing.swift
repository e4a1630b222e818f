// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// What comes after a record's bytes: the index is told, or the record is wiped.
extension DiskEngine {
    /// Wipes the head of a record whose write failed, of which some or all may have reached the disk.
    ///
    /// - Returns: whether nothing of it can be found any more.
    func wipe(_ place: LogState.Place) -> Bool {
        let zeros = ByteChunk([UInt8](repeating: 0, count: 16))
        return (try? files.write(zeros, to: place.segment.file.open, at: place.offset)) != nil
    }

    /// Ends a reserved record: enters it in the index if it was written and nothing has overtaken it.
    func publish(_ record: ReservedRecord, isWritten: Bool, lingers: Bool, _ purpose: Purpose) -> Published {
        var outcome = enter(record, isWritten: isWritten, lingers: lingers, purpose)
        if outcome.isRefused {
            // A predicate leaves no tombstone, so the record itself goes; while it is pending, so that a purge can wait for it.
            outcome.lingers = !wipe(record.place)
            let primary = record.header.primary
            index.shard(of: primary).state.withLock { shard in
                _ = shard.endPending(
                    ShardedIndex.fragment(of: primary),
                    record.header.variant,
                    order: record.header.order
                )
                if outcome.lingers { shard.lingering.note(primary) }
            }
        }
        let isThere = isWritten && !(outcome.isRefused && !outcome.lingers)
        let wantsTable = log.withLock {
            $0.finish(record.place, row: isThere ? record.tableRow : nil, blob: isThere ? record.blob : nil)
        }
        if wantsTable { threads.later(.changes) { [self] in sealFull() } }
        if let added = outcome.added {
            tryOut(added, primary: record.header.primary, size: record.header.bytesTaken)
        }
        return outcome
    }

    private func enter(_ record: ReservedRecord, isWritten: Bool, lingers: Bool, _ purpose: Purpose) -> Published {
        let identity = EntryIdentity(primary: record.header.primary, variant: record.header.variant)
        let fragment = ShardedIndex.fragment(of: identity.primary)
        let order = record.header.order
        return index.shard(of: identity.primary).state.withLock { shard -> Published in
            let old = shard.table.row(fragment, variant: identity.variant)
            let isVoid = record.place.segment.epoch < epoch.load(ordering: .acquiring)
            if isWritten, !isVoid, !shard.accepts(purpose, old, fragment, record) { return Published(isRefused: true) }
            let pending = shard.endPending(fragment, identity.variant, order: order)
            guard isWritten else {
                if lingers { shard.lingering.note(identity.primary) }
                return Published()
            }
            if isVoid { return Published() }
            if let writer = purpose.writer { shard.writers.end(writer) }
            if purpose.isNew {
                if pending?.isOvertaken == true || (old?.order ?? 0) > order {
                    shard.table.change(fragment, variant: identity.variant) { $0.shadows = true }
                    return Published(isIn: true, isOvertaken: true)
                }
            }
            var row = IndexRow(fragment: fragment, variant: identity.variant, place: record.indexPlace, order: order)
            row.isPinned = record.header.isPinned
            row.hasBlob = record.header.hasBlob
            row.shadows =
                old != nil || shard.mayHide(identity.primary, fragment, identity.variant)
                || isReclaiming.load(ordering: .acquiring)
            row.mark = old?.mark ?? shard.frequencies.noteMiss(row.keyHash)
            do {
                _ = try shard.table.insert(row)
            } catch {
                shard.lingering.note(identity.primary)
                return Published()
            }
            if old == nil {
                shard.frequencies.fit(held: shard.table.count, used: ledger.used, capacity: ledger.capacity)
            }
            shard.overtake(fragment, identity.variant, below: row.order)
            let replaced = old.map { GoneRow(row: $0, segment: slots.underLock($0.place.slot)) }
            // Under the lock, so that the segment is not reclaimed before the number of the blob was read from it.
            if purpose.isNew, let replaced { noteRelease(replaced) }
            return Published(
                isIn: true,
                added: old == nil ? row : nil,
                replaced: replaced,
                surplus: shard.table.surplus(fragment)
            )
        }
    }
}

extension Shard {
    /// Whether a record that is written may be seen.
    fileprivate func accepts(
        _ purpose: DiskEngine.Purpose,
        _ old: IndexRow?,
        _ fragment: UInt64,
        _ record: ReservedRecord
    ) -> Bool {
        switch purpose {
        case .commit(let writer, _): writers.maySucceed(writer) == true
        case .put:
            pending.contains { $0.order == record.header.order && $0.fragment == fragment && !$0.isSuperseded }
        case .replace(let order, _): old?.order == order
        }
    }
}
