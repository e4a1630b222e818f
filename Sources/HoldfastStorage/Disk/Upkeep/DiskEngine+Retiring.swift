// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// How a segment's file ends: under another number or not at all. For the thread of changes.
extension DiskEngine {
    /// Takes a segment out whose rows are dealt with: its file becomes a new segment, or goes.
    ///
    /// Readers of the old segment may be under way: what they read from a file that is being written again fails its check,
    /// and the index, which no longer names it, sends them on.
    func retire(_ victim: LogState.Sealed, recyclingFor kind: LogKind?) throws(StoreError) -> Segment? {
        if let kind, let recycled = try recycle(victim.segment, for: kind) { return recycled }
        if kind == nil, try keepForReclaimer(victim.segment) { return nil }
        do throws(FileSystemError) {
            try manifest.note(victim.segment.number, is: .idle)
            try files.removeIfThere(layout.segment(victim.segment.number))
        } catch {
            throw failed(error)
        }
        succeeded()
        // A row that stays says only that the file may be gone.
        try? manifest.remove(victim.segment.number)
        forget(victim.segment)
        victim.segment.file.unlinked()
        return nil
    }

    /// Keeps the file of a segment for what will be carried, where none is kept yet: a new file costs more than one used again.
    ///
    /// Its bytes stay granted, and what is kept back for the reclaimer is less by as much.
    private func keepForReclaimer(_ old: Segment) throws(StoreError) -> Bool {
        guard ledger.capacity / geometry.segmentSize >= 32, old.size == geometry.segmentSize,
            log.withLock({ $0.carriedSpare == nil }), let segment = try recycle(old, for: .main)
        else { return false }
        log.withLock { $0.carriedSpare = segment }
        noteRoomAhead()
        return true
    }

    /// Nil: it cannot be used again and is to be removed.
    private func recycle(_ old: Segment, for kind: LogKind) throws(StoreError) -> Segment? {
        let growth = geometry.segmentSize - old.size
        guard ledger.grant(growth, for: .caller) else { return nil }
        guard let slot = slots.take() else {
            ledger.release(growth)
            return nil
        }
        let header = nextHeader(kind)
        let path = layout.segment(header.number)
        do throws(FileSystemError) {
            try manifest.note(old.number, is: .idle)
            try files.rename(layout.segment(old.number), to: path)
        } catch {
            slots.free(slot)
            ledger.release(growth)
            throw failed(error)
        }
        old.file.resized(to: geometry.segmentSize)
        // From here on the file's name and its old header differ, so what it holds is void.
        forget(old)
        do throws(FileSystemError) {
            // Full length before the header: by its length an unfinished segment is told from one that had its table.
            if growth > 0 {
                try files.allocate(old.file.open, size: geometry.segmentSize)
            } else {
                // Its table may have ended a few bytes before the end.
                try files.truncate(old.file.open, to: geometry.segmentSize)
            }
            try files.write(ByteChunk(header.encode(seed: seed)), to: old.file.open, at: 0)
            try manifest.enter(header, inPlaceOf: old.number)
        } catch {
            slots.free(slot)
            try? manifest.remove(old.number)
            // What cannot be removed either stays counted until the store is opened again.
            if (try? files.removeIfThere(path)) != nil { old.file.unlinked() }
            throw failed(error)
        }
        succeeded()
        let segment = Segment(header, slot: slot, file: old.file)
        slots.put(segment)
        return segment
    }

    private func forget(_ segment: Segment) {
        log.withLock { $0.remove(segment) }
        slots.free(segment.slot)
    }
}
