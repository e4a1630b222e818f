// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import CrashChild

/// Promise 4 of the store once more, on simulated files: the world stops at a chosen step of the file system, where a signal
/// would have to be lucky, and after a loss of power too.
@Suite("A store that is stopped at any step", .timeLimit(.minutes(60)))
struct SimulatedCrashTests {
    private let now = StoreInstant(milliseconds: 1)

    /// A store, what it works on, and what it acknowledged before the world stopped.
    private struct Run {
        var check: CrashCheck
        var files: SimulatedFileSystem
        /// Steps of the file system that the run took.
        var steps = 0
    }

    @Test("After a kill at any step, the store has what was acknowledged and nothing else", arguments: CrashTests.arms)
    func kill(_ arm: CrashTests.Arm) async throws {
        try await each(arm) { run, _ in run.files.crashed(.process) }
    }

    @Test("After a power loss at any step, the store serves nothing wrong", arguments: CrashTests.arms)
    func power(_ arm: CrashTests.Arm) async throws {
        try await each(arm, losesPower: true) { run, generator in run.files.crashed(.power(using: &generator)) }
    }

    private func each(
        _ arm: CrashTests.Arm,
        losesPower: Bool = false,
        _ crash: (Run, inout SeededGenerator) -> SimulatedFileSystem
    ) async throws {
        let whole = try await run(arm, seed: CrashTests.seed, stop: nil, rounds: 1)
        #expect(
            whole.check.findings.isEmpty && whole.check.putsDone > 5 && whole.steps > 60,
            "\(whole.check.findings)"
        )
        var generator = SeededGenerator(seed: CrashTests.seed)
        for round in 0..<max(1, CrashTests.rounds) {
            let seed = generator.next()
            let step = Int.random(in: 0..<whole.steps, using: &generator)
            let stop: SimulatedFileSystem.Fault =
                Bool.random(using: &generator) ? .stop(after: step) : .stop(within: step)
            var run = try await run(arm, seed: seed, stop: stop, rounds: UInt64(round))
            run.files = crash(run, &generator)
            run.check.crash()
            if Bool.random(using: &generator) {
                // It dies again while it opens.
                run.files.plan(.stop(within: Int.random(in: 0..<60, using: &generator)))
                if let store = try? await open(arm, run.files) { await store.close() }
                run.files = crash(run, &generator)
            }
            let store = try await open(arm, run.files)
            var wrong: [String] = []
            for line in await CrashSurvey.lines(of: store, now: now) {
                // What power took may be missing, old, or found damaged when its record or its body is read: a miss, but never
                // served. Either is what the store says it throws then.
                if losesPower {
                    if case .wrong(let text) = line, !text.hasSuffix(": corrupt") { wrong.append(text) }
                } else {
                    run.check.read(line)
                }
            }
            await store.close()
            wrong += run.check.findings
            #expect(wrong.isEmpty, "CRASH_SEED=\(CrashTests.seed) \(arm.testDescription) round \(round): \(wrong)")
            if !wrong.isEmpty { return }
        }
    }

    private func open(_ arm: CrashTests.Arm, _ files: SimulatedFileSystem) async throws -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: arm.capacity, fileSystem: files, now: now)
    }

    /// Opens a store and has one worker work on it until the world stops or the work is done.
    private func run(
        _ arm: CrashTests.Arm,
        seed: UInt64,
        stop: SimulatedFileSystem.Fault?,
        rounds: UInt64
    ) async throws -> Run {
        let files = SimulatedFileSystem()
        if let stop { files.plan(stop) } else { files.plan() }
        let log = Log(files: files)
        var run = Run(check: CrashCheck(mayEvict: arm.mayEvict), files: files)
        if let store = try? await open(arm, files) {
            let print = CrashLog { text in log.note(text) }
            var worker = CrashWorker(number: 0, store: store, log: print, seed: seed, firstStamp: rounds << 40)
            for _ in 0..<40 where !files.isStopped { await worker.step() }
            run.steps = files.stepCount
            await store.close()
        }
        for text in log.lines { run.check.read(CrashLine(text.dropLast()) ?? .wrong("unreadable line \(text)")) }
        return run
    }

    /// Keeps what is printed while the world goes on: what comes after it nobody has heard.
    private final class Log: Sendable {
        private let kept = Mutex<[String]>([])
        private let files: SimulatedFileSystem

        init(files: SimulatedFileSystem) {
            self.files = files
        }

        var lines: [String] { kept.withLock { $0 } }

        func note(_ text: String) {
            if !files.isStopped { kept.withLock { $0.append(text) } }
        }
    }
}
