// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Harness
internal import HoldfastStorage

/// The work of a separate process for the open case: this program, started again with arguments that `--help` does not list.
struct OpenChild: Sendable {
    /// The output of the process.
    struct Answer: Sendable, Codable {
        var milliseconds: Double
        var entries: Int
        /// The growth of anonymous resident memory, after freed memory was returned to the system.
        var keptBytes: Int?
        /// The same growth before freed memory was returned.
        var grownBytes: Int?
    }

    private static let capacity = 8 << 30
    private let words: [String]

    /// Fills a new store until it holds `entries` entries or `seconds` have passed, and closes it.
    static func fill(_ directory: String, entries: Int, seconds: Double) -> OpenChild {
        OpenChild(checked: ["child-fill", directory, "\(entries)", "\(seconds)"])
    }

    /// Opens the store and closes it.
    static func open(_ directory: String) -> OpenChild {
        OpenChild(checked: ["child-open", directory])
    }

    /// Creates the child that the arguments request; nil if they request none.
    init?(_ words: [String]) {
        guard let first = words.first, ["child-fill": 4, "child-open": 2][first] == words.count else { return nil }
        self.init(checked: words)
    }

    private init(checked words: [String]) {
        self.words = words
    }

    /// Starts the process and waits for its output.
    func launch() throws -> Answer {
        guard let program = Bundle.main.executableURL else { throw CallFailure("open", "finding this program", 1) }
        let (process, pipe) = (Process(), Pipe())
        process.executableURL = program
        process.arguments = words
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw CallFailure("open", words[0], process.terminationStatus)
        }
        return try JSONDecoder().decode(Answer.self, from: output)
    }

    /// Does the work and prints the answer, in the started process.
    func run() async throws {
        let directory = words[1]
        // The one-time costs of a process's first store (threads, loading code) do not belong to the index.
        let small = directory + "-warm"
        defer { try? FileManager.default.removeItem(atPath: small) }
        let first = try await openStore(small)
        try await put(0..<100, into: first, until: .infinity)
        await first.close()
        let answer = words[0] == "child-fill" ? try await fill() : try await open()
        print(String(bytes: try JSONEncoder().encode(answer), encoding: .utf8) ?? "")
    }

    private func open() async throws -> Answer {
        let before = settledMemory()
        let watch = Stopwatch()
        let store = try await openStore(words[1])
        let milliseconds = Double(watch.nanoseconds) / 1e6
        let grown = ProcessCounters.memory()?.anonymous
        let kept = settledMemory()
        let answer = Answer(
            milliseconds: milliseconds,
            entries: store.statistics.entryCount,
            keptBytes: Self.difference(kept, before),
            grownBytes: Self.difference(grown, before)
        )
        await store.close()
        return answer
    }

    private func fill() async throws -> Answer {
        let (entries, seconds) = (Int(words[2]) ?? 0, Double(words[3]) ?? 0)
        let store = try await openStore(words[1])
        let before = settledMemory()
        let watch = Stopwatch()
        // Four tasks, because a put may wait for one of the store's threads.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for part in 0..<4 {
                group.addTask {
                    let range = (entries * part / 4)..<(entries * (part + 1) / 4)
                    try await put(range, into: store, until: seconds)
                }
            }
            try await group.waitForAll()
        }
        var answer = Answer(milliseconds: Double(watch.nanoseconds) / 1e6, entries: store.statistics.entryCount)
        answer.keptBytes = Self.difference(settledMemory(), before)
        await store.close()
        return answer
    }

    private func openStore(_ directory: String) async throws -> DiskStore {
        try await DiskStore.open(directory: directory, capacity: Self.capacity, now: Self.now)
    }

    private func put(_ entries: Range<Int>, into store: DiskStore, until seconds: Double) async throws {
        let workload = Workload(size: 100)
        let watch = Stopwatch()
        for entry in entries {
            if entry % 256 == 0, watch.seconds > seconds { return }
            let writer = try await store.write(
                StoreKey(workload.key(entry)),
                variant: StoreKey([]),
                description: EntryDescription(metadata: workload.metadata(entry)),
                expectedLength: workload.size,
                now: Self.now
            )
            try await writer.append(workload.body(entry))
            try await writer.commit(nil, now: Self.now)
        }
    }

    private func settledMemory() -> Int? {
        ProcessCounters.returnFreedMemory()
        return ProcessCounters.memory()?.anonymous
    }

    private static func difference(_ later: Int?, _ earlier: Int?) -> Int? {
        guard let later, let earlier else { return nil }
        return later - earlier
    }

    private static let now = StoreInstant(milliseconds: 1_700_000_000_000)
}
