// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastStorage

/// Four readers and one writer on a full store while it evicts entries: measures the waiting time of readers and the disk
/// usage.
struct ReclaimCase {
    let plan: Plan
    let options: CommandOptions
    let scratch: ScratchDirectory
    private static let readers = 4

    func run(into report: inout Report) async throws -> [String] {
        var findings: [String] = []
        let bodies = ReclaimBodies()
        if options.includes(subject: "raw") {
            Program.say("reclaim: raw")
            let path = scratch.path(of: "ring")
            let target = try RingTarget(path: path, bytes: plan.reclaimCapacity, bodies: bodies)
            defer {
                close(target.file)
                scratch.dropLargeFiles()
            }
            // The raw subject does not need a full minute.
            let outcome = try await measure(target, first: 0, seconds: max(1, plan.reclaimSeconds / 4), directory: nil)
            add(outcome, "raw", to: &report)
        }
        if options.includes(subject: "holdfast") {
            Program.say("reclaim: holdfast")
            let directory = scratch.path(of: "reclaim")
            defer { scratch.dropLargeFiles() }
            let now = StoreInstant(milliseconds: 1_700_000_000_000)
            let capacity = plan.reclaimCapacity
            let store = try await DiskStore.open(directory: directory, capacity: capacity, now: now)
            let target = StoreTarget(store: store, bodies: bodies)
            let outcome: ReclaimBoard.Outcome
            do {
                let first = try await fill(store, target)
                outcome = try await measure(
                    target,
                    first: first,
                    seconds: plan.reclaimSeconds,
                    directory: directory
                )
            } catch {
                await store.close()
                throw error
            }
            let evicted = store.statistics.entriesEvicted
            await store.close()
            add(outcome, "holdfast", to: &report)
            report.add(Figure("reclaim-disk-peak", "holdfast", Double(outcome.peak), "bytes"))
            report.add(Figure("reclaim-disk-peak", "capacity", Double(capacity), "bytes"))
            report.add(Figure("reclaim-evicted", "holdfast", Double(evicted), "ops"))
            if evicted == 0 { report.note("Nothing was evicted in the reclaim case. Use a larger --seconds.") }
            if outcome.peak > capacity {
                findings.append(
                    "holdfast held \(outcome.peak) bytes on the disk, more than its capacity of \(capacity)."
                )
            }
        }
        return findings
    }

    /// Writes until the store begins to evict.
    ///
    /// - Returns: the number of the next entry.
    private func fill(_ store: DiskStore, _ target: StoreTarget) async throws -> Int {
        let watch = Stopwatch()
        var entry = 0
        while store.statistics.entriesEvicted == 0, watch.seconds < plan.warmUpSeconds * 4 {
            for _ in 0..<64 {
                try await target.write(entry)
                entry += 1
            }
        }
        return entry
    }

    private func measure(
        _ target: some ReclaimTarget,
        first: Int,
        seconds: Int,
        directory: String?
    ) async throws -> ReclaimBoard.Outcome {
        let board = ReclaimBoard(newest: first, seconds: seconds)
        let pace = Double(plan.writesPerSecond)
        // A separate thread, so that walking the directory does not occupy a thread of the readers.
        if let directory { Thread.detachNewThread { Self.watch(directory, board) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<Self.readers {
                group.addTask { try await Self.read(target, board, seed: UInt64(reader)) }
            }
            group.addTask { try await Self.write(target, board, first: first, pace: pace) }
            try await group.waitForAll()
        }
        return board.outcome
    }

    private static func read(_ target: some ReclaimTarget, _ board: ReclaimBoard, seed: UInt64) async throws {
        defer { board.end() }
        var numbers = SeededNumbers(seed: seed)
        var (waits, hits) = (LatencyHistogram(), 0)
        while !board.isOver {
            let entry = pick(board.newest, &numbers)
            let wait = Stopwatch()
            if try await target.read(entry) { hits += 1 }
            waits.note(nanoseconds: wait.nanoseconds)
            // There are more tasks than threads; without this the others would not run.
            await Task.yield()
        }
        board.note { outcome in
            outcome.waits.merge(waits)
            outcome.hits += hits
        }
    }

    private static func write(
        _ target: some ReclaimTarget,
        _ board: ReclaimBoard,
        first: Int,
        pace: Double
    ) async throws {
        defer { board.end() }
        var writes = 0
        while !board.isOver {
            if pace > 0, Double(writes) > pace * board.seconds {
                try await Task.sleep(nanoseconds: 1_000_000)
                continue
            }
            try await target.write(first + writes)
            writes += 1
            board.newest = first + writes
            await Task.yield()
        }
        board.note { $0.writes = writes }
    }

    private static func watch(_ directory: String, _ board: ReclaimBoard) {
        while !board.isOver {
            let bytes = DiskUse.bytes(below: directory)
            board.note { $0.peak = max($0.peak, bytes) }
            Thread.sleep(forTimeInterval: 0.02)
        }
    }

    /// Mostly recent entries, like in a cache; a tenth of the picks are older.
    private static func pick(_ newest: Int, _ numbers: inout SeededNumbers) -> Int {
        guard newest > 0 else { return 0 }
        let reach = Int.random(in: 0..<10, using: &numbers) == 0 ? newest : min(newest, 2_000)
        return newest - 1 - Int.random(in: 0..<reach, using: &numbers)
    }

    private func add(_ outcome: ReclaimBoard.Outcome, _ subject: String, to report: inout Report) {
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            guard let wait = outcome.waits.percentile(share) else { continue }
            report.add(Figure("reclaim-read-\(name)", subject, Double(wait), "ns"))
        }
        report.add(Figure("reclaim-read-max", subject, Double(outcome.waits.maximum), "ns"))
        report.add(Figure("reclaim-reads", subject, Double(outcome.waits.count), "ops"))
        report.add(Figure("reclaim-hits", subject, Double(outcome.hits), "ops"))
        report.add(Figure("reclaim-writes", subject, Double(outcome.writes), "ops"))
    }
}
