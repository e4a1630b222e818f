// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastCommand
import HoldfastStorage
import HoldfastTestKit
import Testing

@testable import Quickstart

@Suite("The four runs", .timeLimit(.minutes(20)))
struct ScenarioTests {
    /// Runs the program with JSON in a directory of the test's own.
    func reported(_ words: [String], _ scratch: ScratchDirectory) async throws -> [ReportedRun] {
        let recording = RecordedConsole()
        let status = await Quickstart.run(
            words + ["--json", "--directory", scratch.url.path],
            on: recording.console,
            clock: InstantClock()
        )
        #expect(status == 0, "\(recording.error)")
        return try recording.runs()
    }

    @Test(
        "With the cache fewer than half of the requests remain, and no call fails",
        arguments: [1, 2, 9_111] as [UInt64]
    )
    func promise(_ seed: UInt64) async throws {
        // On a clock whose waits end at once a retry that waits for how another one ends would always be too late.
        let words = ["--calls", "400", "--resources", "20", "--concurrency", "1", "--seed", "\(seed)"]
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let runs = try await reported(words, scratch)
        #expect(runs.map(\.name) == ["bare", "retries", "cache+retries", "from disk"])
        #expect(runs.map(\.calls) == [400, 400, 400, 400])
        #expect(runs[0].sent == 400)
        #expect(runs[0].failed > 0)
        #expect(runs[1].sent > 400)
        #expect(runs.dropFirst().map(\.failed) == [0, 0, 0])
        #expect(runs[2].sent * 2 < runs[0].sent)
        #expect(runs[3].sent < runs[2].sent)
        #expect(runs[2].bytesSaved > 0)
    }

    @Test("Without failures the cache sends exactly the requests that the kinds of resources need")
    func exact() async throws {
        let words = ["--calls", "300", "--resources", "25", "--concurrency", "1", "--fail-share", "0", "--seed", "3"]
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let runs = try await reported(words, scratch)
        let calls = Load(count: 300, resources: 25, seed: 3).calls
        let kinds = Resource.catalogue(count: 25, seed: 3).map(\.kind)
        func count(_ kind: ResourceKind) -> Int { calls.count { kinds[$0.resource] == kind } }
        func distinct(_ kind: ResourceKind) -> Set<Int> {
            Set(calls.map(\.resource).filter { kinds[$0] == kind })
        }
        let variants = Set(calls.filter { kinds[$0.resource] == .varying }.map { "\($0.resource) \($0.language)" })

        let unavoidable = count(.unstorable) + count(.revalidated)
        #expect(runs[0].sent == 300)
        #expect(runs[1].sent == 300)
        #expect(runs[2].sent == unavoidable + distinct(.keepable).count + variants.count)
        #expect(runs[2].revalidated == count(.revalidated) - distinct(.revalidated).count)
        #expect(runs[2].hits == 300 - runs[2].sent)
        #expect(runs[2].hits + runs[2].revalidated + runs[2].misses == 300)
        #expect(runs[3].sent == unavoidable)
        #expect(runs[3].revalidated == count(.revalidated))
        #expect(runs[3].hits == count(.keepable) + count(.varying))
        #expect(runs[2].bytesSaved + runs[2].bytesFromNetwork == runs[0].bytesFromNetwork)
        #expect(runs[3].bytesSaved + runs[3].bytesFromNetwork == runs[0].bytesFromNetwork)
    }

    @Test("The same seed gives the same figures, also in a directory that was used before")
    func repeatable() async throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let words = ["--calls", "120", "--resources", "12", "--concurrency", "1", "--seed", "21", "--fail-share", "0"]
        let first = try await reported(words, scratch)
        let second = try await reported(words, scratch)
        #expect(first == second)
        #expect(try scratch.contents() == ["holdfast-quickstart"])
    }

    @Test("A store that cannot be opened ends the program before anything is sent")
    func unusableStore() async throws {
        let target = OriginTarget(resources: 2, failShare: 0, seed: 1, clock: InstantClock())
        let scenario = Scenario(
            target: target,
            load: Load(count: 10, resources: 2, seed: 1),
            concurrency: 1,
            clock: InstantClock(),
            openStore: { throw CommandFailure.unusable(directory: "there", StoreError(.io, "No.")) }
        )
        let recording = RecordedConsole(errorIsTerminal: true)
        await #expect(throws: CommandFailure.self) { try await scenario.run(on: recording.console) }
        #expect(recording.error.isEmpty)
    }

    @Test("Cancelled, the runs end and the store is closed")
    func cancelled() async throws {
        let store = MemoryStore(capacity: 1 << 20)
        let scenario = Scenario(
            target: OriginTarget(resources: 2, failShare: 0, seed: 1, clock: InstantClock()),
            load: Load(count: 1_000_000, resources: 2, seed: 1),
            concurrency: 2,
            clock: InstantClock(),
            openStore: { store }
        )
        let runs = Task { try await scenario.run(on: RecordedConsole().console) }
        runs.cancel()
        await #expect(throws: CancellationError.self) { try await runs.value }
        let key = StoreKey([1])
        await #expect(throws: StoreError.self) {
            try await store.entries(for: key, now: StoreInstant(milliseconds: 0))
        }
    }
}
