// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Synchronization

/// The end of a store.
extension DiskEngine {
    /// Seals what is open, makes all durable and notes in FORMAT that it is; idempotent.
    func close() async {
        let isFirst = life.withLock { life in
            isCalm.store(false, ordering: .releasing)
            return life.close()
        }
        guard isFirst else { return }
        // Writers under way can commit no more, and nothing of theirs is to be left.
        for shard in index.shards { shard.state.withLock { $0.writers.supersedeAll() } }
        // Each thread finishes what it was given before; no new work comes that changes anything.
        for lane in [IOThreads.Lane.writes, .changes, .reads, .syncs] {
            await threads.drain(lane)
        }
        try? await threads.run(.changes, isUrgent: true) { [self] in
            payDebts()
            log.withLock { $0.isClosed = true }
        }
        // The lock of the directory goes only when nobody writes there any more, callers on their own threads included.
        while log.withLock({ $0.writesUnderWay > 0 }) {
            await Task.yield()
            try? await threads.run(.writes, isUrgent: true) {}
        }
        try? await threads.run(.changes, isUrgent: true) { [self] in finishFiles() }
        threads.stop()
    }

    /// Changes: the last steps on the files.
    private func finishFiles() {
        settleReleases()
        blobs.letGo()
        blobs.retryLeftovers()
        log.withLock { log in
            for destination in LogState.Destination.allCases { log.close(destination) }
        }
        sealFull(isCut: true)
        var isSpareGone = true
        for spare in log.withLock({ [$0.spare.take(), $0.carriedSpare.take()].compactMap { $0 } }) {
            slots.free(spare.slot)
            if (try? files.removeIfThere(layout.segment(spare.number))) != nil {
                try? manifest.remove(spare.number)
            } else {
                isSpareGone = false
            }
            spare.file.unlinked()
        }
        let isDurable = (try? makeDurable()) != nil
        // A segment without a table that a clean close left would be taken for a damaged one.
        let hasTables = isSpareGone && log.withLock { $0.full.isEmpty && !$0.hasUntabled }
        let isSettled = isDurable && hasTables && owed.withLock { $0.isEmpty }
        if isSettled {
            try? writeFormat { $0.isClean = true }
        } else if !owed.withLock({ $0.isEmpty }) {
            // What could not be written as gone must not be taken for good when the store is opened again.
            try? writeFormat { $0.suspectBefore = max($0.suspectBefore, orders.last + 1) }
        }
        manifest.close()
        files.close(lockFile)
    }

    private func makeDurable() throws(FileSystemError) {
        for segment in log.withLock({ $0.unsynced }) { try files.sync(segment.file.open) }
        try files.syncDirectory(layout.segments)
        try files.syncDirectory(layout.blobs)
        // The list before the word that all is well: one that is older than that word names segments that are not there.
        try manifest.sync()
    }
}
