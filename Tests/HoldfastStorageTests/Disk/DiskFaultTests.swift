// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// `HOLDFAST_LONG_TESTS=1` tries every step; otherwise each kind of fault tries its share of them.
@Suite("DiskStore: each file system step fails", .timeLimit(.minutes(60)))
struct DiskFaultTests {
    /// The steps to try: some of them, others for each number.
    private static func tried(fills: Bool, number: Int) async throws -> StrideTo<Int> {
        let distance = LongTests.areOn ? 1 : fills ? 36 : 12
        return stride(from: number % distance, to: try await steps(fills: fills), by: distance)
    }

    /// How one step goes wrong, and how the process ends after the run.
    struct Case: Sendable, CustomTestStringConvertible {
        let errno: Int32
        var isShortWrite = false
        var isKilled = false
        var fills = false

        /// A full device makes the store use its own segments again, which evicts.
        var ending: ScriptedDiskRun.Ending { fills || errno == ENOSPC ? .eviction : .harmless }

        var testDescription: String {
            "errno \(errno)\(isShortWrite ? ", half written" : "")\(isKilled ? ", killed" : ", closed")\(fills ? ", full" : "")"
        }

        func fault(at step: Int) -> SimulatedFileSystem.Fault {
            isShortWrite ? .shortWrite(at: step, errno: errno) : .once(at: step, errno: errno)
        }

        static let all = [
            Case(errno: ENOSPC), Case(errno: ENOSPC, isKilled: true), Case(errno: EIO),
            Case(errno: EIO, isKilled: true),
            Case(errno: ENOSPC, isShortWrite: true), Case(errno: EIO, isShortWrite: true, isKilled: true),
            Case(errno: ENOSPC, fills: true),
            Case(errno: EIO, isShortWrite: true, isKilled: true, fills: true),
        ]
    }

    private static func steps(fills: Bool) async throws -> Int {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        let store = try await ScriptedDiskRun.open(files)
        var run = ScriptedDiskRun()
        await run.play(store, fills: fills)
        try await run.check(store, after: fills ? .eviction : .harmless, "clean")
        #expect(run.refusals == 0)
        #expect(fills == (store.statistics.entriesEvicted > 0))
        await store.close()
        return files.stepCount
    }

    /// What lies on the disk and what the store counts, at one instant: while it is still at work in the background, both change
    /// between two looks, and it may cut one file and make the next.
    private static func looks(_ files: SimulatedFileSystem, _ store: DiskStore) -> (used: Int, counted: Int) {
        while true {
            let steps = files.stepCount
            let before = files.usedBytes
            let counted = store.statistics.bytesUsed
            let used = min(before, files.usedBytes)
            if files.stepCount == steps { return (used, counted) }
        }
    }

    @Test(
        "If any step fails once, nothing acknowledged is undone, nothing comes back, and the next call works",
        arguments: Array(Case.all.enumerated())
    )
    func eachStepOnce(_ number: Int, _ kind: Case) async throws {
        for step in try await Self.tried(fills: kind.fills, number: number) {
            let files = SimulatedFileSystem(remembersUnsynced: false)
            files.plan(kind.fault(at: step))
            let comment = "step \(step)"
            var opened = try? await ScriptedDiskRun.open(files)
            if opened == nil { opened = try? await ScriptedDiskRun.open(files) }
            let store = try #require(opened, "\(comment): a second try opens")
            var run = ScriptedDiskRun()
            await run.play(store, fills: kind.fills)
            files.plan()
            let what = files.log.first { $0.errno == kind.errno }.map { "\(comment): \($0)" } ?? comment
            try await run.check(store, after: kind.ending, what)
            try await store.put("after", [1])
            #expect(try await store.get("after").count == 1, "\(what)")
            #expect(files.peakBytes <= ScriptedDiskRun.capacity, "\(what)")
            #expect(store.statistics.bytesUsed <= ScriptedDiskRun.capacity, "\(what)")
            let (used, counted) = Self.looks(files, store)
            #expect(counted >= used, "\(what)")
            var next = files
            if kind.isKilled { next = files.crashed(.process) }
            await store.close()
            let again = try await ScriptedDiskRun.open(next)
            try await run.check(again, after: kind.ending, what + ", reopened")
            #expect(try await again.get("after").count == 1, "\(what)")
            await again.close()
        }
    }

    @Test("After a crash at or within any step, what was acknowledged is there and whole", arguments: [false, true])
    func crashAtEachStep(isWithin: Bool) async throws {
        for fills in [false, true] {
            for step in try await Self.tried(fills: fills, number: isWithin ? 2 : 0) {
                let files = SimulatedFileSystem()
                files.plan(isWithin ? .stop(within: step) : .stop(after: step))
                var run = ScriptedDiskRun()
                let store = try? await ScriptedDiskRun.open(files)
                if let store {
                    await run.play(store, fills: fills)
                    await store.close()
                }
                let last = files.log.last { $0.errno == nil }?.description ?? ""
                let next = files.log.first { $0.errno == EIO }?.description ?? ""
                let what = "crash \(isWithin ? "within" : "before") \(next), after \(last)"
                let left = files.crashed(.process)
                let again = try await ScriptedDiskRun.open(left)
                try await run.check(again, after: fills ? .eviction : .harmless, what)
                let overhead = 8 * 4_096
                #expect(again.statistics.bytesUsed == left.segmentAndBlobBytes + overhead, "\(what)")
                await again.close()
                var generator = SeededGenerator(seed: UInt64(step))
                let boot = files.crashed(.power(using: &generator))
                let isClean = boot.contents(of: "/store/FORMAT").flatMap { FormatFile($0)?.format.isClean } ?? false
                let booted = try await ScriptedDiskRun.open(boot)
                // What was cleanly closed has lost nothing and is trusted.
                try await run.check(booted, after: isClean ? .cleanPowerLoss : .powerLoss, what + ", power lost")
                await booted.close()
            }
        }
    }

    @Test("A segment that could not be begun beside a spare one is not forgotten")
    func secondSpare() async throws {
        let files = SimulatedFileSystem(remembersUnsynced: false)
        func open() async throws -> DiskStore {
            try await DiskStore.open(directory: "/store", capacity: 32 << 20, fileSystem: files, now: .at(0))
        }
        let store = try await open()
        try await store.put("a", [1])
        let engine = store.engine
        try await engine.threads.run(.changes) { engine.room.makeSpare() }
        // The header, the row, and then the row's state.
        files.plan(.once(at: 2, errno: EIO).only("write"))
        let code = await errorCode {
            try await engine.threads.run(.changes) { () throws(StoreError) in try engine.log.openCarried() }
        }
        #expect(code == .io)
        files.plan()
        await store.close()
        let again = try await open()
        #expect(try await again.get("a").first?.needsValidation == false)
        await again.close()
    }
}
