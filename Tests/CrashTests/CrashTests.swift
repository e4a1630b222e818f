// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import CrashChild

/// Promise 4 of the store: a real process is killed at any moment, and what it acknowledged is there and nothing else.
///
/// `CRASH_ROUNDS` sets how often, in all (100); `CRASH_SEED` repeats the operations of a run, though not its moments.
@Suite("A store whose process is killed", .timeLimit(.minutes(60)))
struct CrashTests {
    /// A way to run the store.
    struct Arm: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let capacity: Int
        let mayEvict: Bool
        /// Body bytes after which a fresh directory is begun; below it nothing needs to be evicted.
        let bytesPerDirectory: Int
    }

    static let arms = [
        Arm(testDescription: "room for all", capacity: 256 << 20, mayEvict: false, bytesPerDirectory: 16 << 20),
        Arm(testDescription: "room for few", capacity: 4 << 20, mayEvict: true, bytesPerDirectory: 48 << 20),
    ]

    static let rounds = number("CRASH_ROUNDS").map(Int.init(clamping:)) ?? 100
    static let seed = number("CRASH_SEED") ?? .random(in: 0 ..< .max)

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    @Test("Acknowledged puts are complete; nothing torn, superseded, removed or purged is served", arguments: arms)
    func kills(_ arm: Arm) async throws {
        let seed = Self.seed ^ UInt64(arm.capacity)
        var generator = SeededGenerator(seed: seed)
        var round: UInt64 = 0
        var (kills, puts, directories) = (0, 0, 0)
        let wanted = max(1, Self.rounds / Self.arms.count)
        while kills < wanted {
            let scratch = try ScratchDirectory()
            defer { scratch.remove() }
            directories += 1
            var check = CrashCheck(mayEvict: arm.mayEvict)
            while kills < wanted, check.bytesWritten < arm.bytesPerDirectory, check.findings.isEmpty {
                round += 1
                try await self.round(round, arm, scratch.store, &check, &generator)
                kills += 1
                // Else the next child finds what this one left, and surveys it itself: no clean close comes between.
                if check.findings.isEmpty, kills == wanted || Int.random(in: 0..<3, using: &generator) == 0 {
                    try await survey(arm, scratch.store, &check)
                }
            }
            puts += check.putsDone
            let place: Comment = "CRASH_SEED=\(Self.seed), \(arm.testDescription), round \(round)"
            #expect(check.findings.isEmpty, "\(place): \(check.findings.joined(separator: "; "))")
            if !check.findings.isEmpty { return }
        }
        #expect(puts > wanted, "the children did some work")
        print(
            "\(arm.testDescription): \(kills) kills, \(puts) puts, \(directories) directories, CRASH_SEED=\(Self.seed)"
        )
    }

    /// Starts a child, lets it work for a while, kills it, and has its log judged.
    private func round(
        _ round: UInt64,
        _ arm: Arm,
        _ directory: String,
        _ check: inout CrashCheck,
        _ generator: inout SeededGenerator
    ) async throws {
        let arguments = ["run", directory, "\(arm.capacity)", "\(generator.next())", "\(round)"]
        // Now and then it dies while it opens or surveys; the log shows where.
        let isEarly = Int.random(in: 0..<8, using: &generator) == 0
        let lines = Int.random(in: isEarly ? 0..<40 : 40..<200, using: &generator)
        let pause = UInt64.random(in: 0..<(isEarly ? 20_000_000 : 1_000_000), using: &generator)
        let (log, wasAlive) = try await onThread { () throws -> ([String], Bool) in
            let child = try StoreProcess(arguments)
            var log: [String] = []
            while log.count < lines, let line = child.nextLine() { log.append(line) }
            // A moment within an operation, not only one after a line. Nothing is waited for: any length will do.
            var length = timespec(tv_sec: 0, tv_nsec: Int(pause))
            nanosleep(&length, nil)
            let wasAlive = child.kill()
            return (log + child.remainingLines(), wasAlive)
        }
        for text in log {
            check.read(CrashLine(text) ?? .wrong("unreadable line \(text)"))
        }
        check.crash()
        #expect(wasAlive, "CRASH_SEED=\(Self.seed), round \(round): the child ended by itself after \(log.suffix(3))")
    }

    /// Opens the store in this process, has what lies in it judged, and closes it cleanly.
    private func survey(_ arm: Arm, _ directory: String, _ check: inout CrashCheck) async throws {
        let now = StoreInstant(milliseconds: 1)
        let store = try await DiskStore.open(directory: directory, capacity: arm.capacity, now: now)
        for line in await CrashSurvey.lines(of: store, now: now) { check.read(line) }
        await store.close()
    }
}

/// A directory of a test's own; the store makes one in it.
struct ScratchDirectory {
    private let url = FileManager.default.temporaryDirectory.appending(path: "holdfast-crash-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    var path: String { url.path }
    var store: String { url.appending(path: "store").path }

    func remove() {
        try? FileManager.default.removeItem(at: url)
    }
}
