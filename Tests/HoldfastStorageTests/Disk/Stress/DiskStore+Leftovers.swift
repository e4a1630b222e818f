// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Synchronization

@testable import HoldfastStorage

extension DiskStore {
    /// What should be gone once nobody works on a store, and is not.
    func leftovers(_ files: SimulatedFileSystem) async throws -> [String] {
        // Several threads read at a time, so that only a barrier tells that all have ended.
        for lane in [IOThreads.Lane.writes, .changes, .reads, .syncs, .changes] { await engine.threads.drain(lane) }
        // Files kept open for the next reader are bounded and wanted.
        engine.blobs.closeCached()
        var left: [String] = []
        func expect(_ what: String, _ count: Int) { if count != 0 { left.append("\(what): \(count)") } }
        for shard in engine.index.shards {
            shard.state.withLock { shard in
                expect("pending", shard.pending.count)
                expect("removing", shard.removing.count)
                expect("writers", shard.writers.all.count)
            }
        }
        expect("tombstones pending, or blobs to be removed", engine.remover.pendingCount)
        let pinned = try pinnedWeight
        expect("pinned bytes without a row", engine.pins.sum - pinned)
        expect("writes in flight", engine.log.ask { $0.writesInFlight })
        expect("blobs that nothing names", try files.list(engine.log.layout.blobs).count - blobRows)
        let segments = try files.list(engine.log.layout.segments).count
        // Each segment is open once, and FORMAT and the lock.
        expect("open files", files.openFileCount - segments - 2)
        // The ledger counts FORMAT, the lock and directories with a fixed sum.
        let small = 4 * 4_096
        expect("bytes", engine.quota.used - SpaceBudget.overhead(rows: 0) - (files.usedBytes - small))
        return left
    }

    /// What the pinned rows weigh.
    var pinnedWeight: Int {
        get throws(StoreError) {
            var weight = 0
            var place = IndexPosition()
            while !place.isEnd {
                let rows = engine.index.rows(from: place, limit: .max)
                for row in rows where row.isPinned {
                    let primary = ShardedIndex.primary(shard: place.shard, row.fragment)
                    guard case .record(let source) = try engine.lookup.read(row, primary: primary, waits: true) else {
                        continue
                    }
                    weight += engine.writer.pinWeight(source.header)
                }
                place.pass(nil)
            }
            return weight
        }
    }

    /// How many entries have a blob.
    var blobRows: Int {
        var count = 0
        for shard in engine.index.shards {
            shard.state.withLock { shard in shard.table.forEach { count += $0.hasBlob ? 1 : 0 } }
        }
        return count
    }
}
