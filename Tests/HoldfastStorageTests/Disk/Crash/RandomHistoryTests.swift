// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// Promises 1, 2 and 4 under random histories: four tasks at once on a store so small that it reclaims all the time, killed at any
/// step of the file system and opened again. What is there must be what the histories allow.
@Suite("DiskStore: random histories on a tiny store", .timeLimit(.minutes(20)))
struct RandomHistoryTests {
    static let capacity = 1 << 20

    private func open(_ files: SimulatedFileSystem) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: Self.capacity, fileSystem: files, now: .at(1))
    }

    /// Has all workers work at once until they have done their steps or the world has stopped.
    private func work(
        _ workers: [HistoryWorker],
        _ store: DiskStore,
        _ files: SimulatedFileSystem,
        steps: Int
    ) async -> [HistoryWorker] {
        await withTaskGroup(of: HistoryWorker.self) { group in
            for worker in workers {
                group.addTask {
                    var worker = worker
                    for _ in 0..<steps where !files.isStopped { await worker.step(store) { files.isStopped } }
                    return worker
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    private func expectSound(_ workers: [HistoryWorker], _ comment: Comment) -> Bool {
        let findings = workers.flatMap(\.findings)
        #expect(findings.isEmpty, comment)
        return findings.isEmpty
    }

    @Test(
        "Killed at any step and reopened, it holds what was last acknowledged or less",
        arguments: 0..<6 as Range<UInt64>
    )
    func kills(seed: UInt64) async throws {
        try await crash(seed: seed, losesPower: false)
    }

    @Test(
        "After a power loss everything left needs validation and nothing is wrong",
        arguments: 0..<6 as Range<UInt64>
    )
    func power(seed: UInt64) async throws {
        try await crash(seed: seed, losesPower: true)
    }

    private func crash(seed: UInt64, losesPower: Bool) async throws {
        var generator = SeededGenerator(seed: seed)
        var files = SimulatedFileSystem(remembersUnsynced: losesPower)
        var workers = (0..<4).map { HistoryWorker(number: $0, seed: seed) }
        for index in workers.indices { workers[index].mayBeDamaged = losesPower }
        for round in 0..<8 {
            let comment: Comment = "seed \(seed) round \(round)"
            let store = try await open(files)
            let isAfterPower = losesPower && round > 0
            for index in workers.indices { await workers[index].survey(store, afterPowerLoss: isAfterPower) }
            guard expectSound(workers, comment) else { return }
            let step = Int.random(in: 50..<900, using: &generator)
            files.plan(Bool.random(using: &generator) ? .stop(after: step) : .stop(within: step))
            workers = await work(workers, store, files, steps: 120)
            if !files.isStopped, Int.random(in: 0..<4, using: &generator) == 0 {
                _ = try? await store.purge(.all, now: .at(1))
                if !files.isStopped { for index in workers.indices { workers[index].purgedAll() } }
            }
            guard expectSound(workers, comment) else { return }
            // Names that power brought back stand until the store is open again.
            #expect(losesPower || files.peakBytes <= Self.capacity, comment)
            // A clean close makes all durable: there is no need to doubt it.
            if !files.isStopped, !losesPower, Bool.random(using: &generator) { await store.close() }
            files = files.crashed(losesPower ? .power(using: &generator) : .process)
            await store.close()
        }
    }

    @Test("Occasional faults cost entries and nothing else", arguments: 0..<4 as Range<UInt64>)
    func faults(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        var files = SimulatedFileSystem(remembersUnsynced: false)
        var workers = (0..<4).map { HistoryWorker(number: $0, seed: seed &+ 1_000) }
        for round in 0..<10 {
            let comment: Comment = "seed \(seed) round \(round)"
            let store = try await open(files)
            for index in workers.indices { await workers[index].survey(store, afterPowerLoss: false) }
            guard expectSound(workers, comment) else { return }
            let at = (0..<3).map { _ in Int.random(in: 0..<700, using: &generator) }
            files.plan(.once(at: at[0], errno: 5), .shortWrite(at: at[1], errno: 28), .once(at: at[2], errno: 28))
            workers = await work(workers, store, files, steps: 100)
            guard expectSound(workers, comment) else { return }
            #expect(files.peakBytes <= Self.capacity, comment)
            files.plan()
            if Bool.random(using: &generator) { await store.close() }
            files = files.crashed(.process)
            await store.close()
        }
    }

    @Test(
        "Nothing is left over after a history: no open files, writes, blobs or bytes",
        arguments: 0..<6 as Range<UInt64>
    )
    func leftovers(seed: UInt64) async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await open(files)
        var workers = (0..<4).map { HistoryWorker(number: $0, seed: seed &+ 500) }
        for round in 0..<3 {
            workers = await work(workers, store, files, steps: 150)
            if round == 1 {
                _ = try await store.purge(.all, now: .at(1))
                for index in workers.indices { workers[index].purgedAll() }
            }
            let comment: Comment = "seed \(seed) round \(round)"
            guard expectSound(workers, comment) else { return }
            #expect(try await store.leftovers(files) == [], comment)
            #expect(files.peakBytes <= Self.capacity, comment)
        }
        await store.close()
        // Segments stay open for what is still read of them, as long as the store is held.
        #expect(try files.openFileCount == files.list("/store/segments").count)
        #expect(try files.list("/store/blobs").count == store.blobRows)
    }
}
