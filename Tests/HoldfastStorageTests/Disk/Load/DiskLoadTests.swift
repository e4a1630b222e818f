// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// No put fails, no byte is wrong, never over the capacity.
@Suite("DiskStore: load", .timeLimit(.minutes(60)))
struct DiskLoadTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let mebibytes: Int
        let callers: Int
        var extras: DiskLoad.Extras = []

        var testDescription: String { "\(mebibytes) MiB, \(callers) callers, \(extras)" }

        var load: DiskLoad {
            var load = DiskLoad(capacity: mebibytes << 20, callers: callers, extras: extras)
            // About as many as fit: most of what is reclaimed is wanted again, or is dead.
            load.hotKeys = max(100, load.capacity / 16_500)
            return load
        }

        static let short = [
            Case(mebibytes: 1, callers: 4, extras: [.pins, .changes]), Case(mebibytes: 16, callers: 2),
            Case(mebibytes: 16, callers: 16, extras: .all), Case(mebibytes: 64, callers: 4, extras: .all),
            Case(mebibytes: 64, callers: 4, extras: .web),
        ]

        static let long = [16, 64, 256].flatMap { mebibytes in
            [2, 4, 16].flatMap { callers in
                // Callers of so many sizes could not all write at once to a small store.
                let extras: [DiskLoad.Extras] = [[], .blobs, [.blobs, .pins], .all, .web]
                return extras.prefix(mebibytes < 64 ? 4 : 5).map {
                    Case(mebibytes: mebibytes, callers: callers, extras: $0)
                }
            }
        }
    }

    private static let seconds = ProcessInfo.processInfo.environment["HOLDFAST_LOAD_SECONDS"].flatMap(Double.init)

    @Test("Callers that get and put always find room", arguments: Case.short)
    func short(_ load: Case) async throws {
        // A store has to be filled many times before it could split into small segments.
        let bytes = load.extras == .web ? 16 * load.load.capacity : min(6 * load.load.capacity, 128 << 20)
        try await Self.run(load, until: .bytes(max(16 << 20, bytes)), seed: .random(in: 0..<1_000))
    }

    @Test(
        "The same for longer: HOLDFAST_LOAD_SECONDS, divided among the tests",
        .enabled(if: seconds != nil),
        .serialized,
        arguments: Case.long
    )
    func long(_ load: Case) async throws {
        let share = (Self.seconds ?? 0) / Double(Case.long.count)
        try await Self.run(load, until: .seconds(share), seed: .random(in: 0..<1_000))
    }

    private static func run(_ kind: Case, until end: DiskLoad.End, seed: UInt64) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let load = kind.load
        let what = "\(kind.testDescription), seed \(seed)"
        let store = try await DiskStore.open(directory: directory.path, capacity: load.capacity, now: .at(0))
        let outcome = await load.run(store, until: end, seed: seed) { directory.heldBytes() }
        let statistics = store.statistics
        let segments = directory.files().count { $0.hasSuffix(".seg") }
        print("load:", what, outcome.summary, "entries \(statistics.entryCount), segments \(segments)")
        #expect(outcome.faults == [], "\(what)")
        #expect(outcome.failures == [:], "\(what)")
        #expect(outcome.peak > 0 && outcome.peak <= load.capacity, "\(what)")
        #expect(statistics.bytesUsed <= load.capacity, "\(what)")
        #expect(
            statistics.entryCount * 15_500 > load.capacity / 2 || kind.mebibytes < 64 || kind.extras.contains(.web),
            "most of the space holds nothing: \(what)"
        )
        // Each is an open file.
        let usual = load.capacity / Geometry(capacity: load.capacity).segmentSize
        #expect(segments <= usual + 8, "many small segments: \(what)")
        #expect(statistics.entriesCorrupt == 0 && statistics.failures == 0, "\(what)")
        await store.close()
        // What it leaves is a store in which puts find room, too.
        let again = try await DiskStore.open(directory: directory.path, capacity: load.capacity, now: .at(0))
        let more = await load.run(again, until: .bytes(4 << 20), seed: seed &+ 1_000) { 0 }
        #expect(more.faults == [] && more.failures == [:], "\(what), reopened")
        await again.close()
    }
}

extension DiskLoad.Outcome {
    fileprivate var summary: String {
        "requests \(requests), puts \(puts), MiB \(bytesPut >> 20), hits \(hits), slowest put \(slowestPut), peak \(peak)"
    }
}

extension TemporaryDirectory {
    /// What the files beneath take on the disk, those included that have lost their names and are open here.
    ///
    /// Files come and go between two looks, so that one look can count too much: the least of three is what there was.
    fileprivate func heldBytes() -> Int {
        (0..<3).reduce(Int.max) { least, _ in min(least, look()) }
    }

    private func look() -> Int {
        var sizes: [UInt64: Int] = [:]
        func note(_ found: stat) { sizes[UInt64(found.st_ino)] = Int(found.st_blocks) * 512 }
        for name in files() {
            var found = stat()
            if stat(path + "/" + name, &found) == 0 { note(found) }
        }
        #if os(Linux)
            let manager = FileManager.default
            for number in (try? manager.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
                guard let target = try? manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + number),
                    target.hasPrefix(path), target.hasSuffix(" (deleted)"), let descriptor = Int32(number)
                else { continue }
                var found = stat()
                if fstat(descriptor, &found) == 0 { note(found) }
            }
        #endif
        return sizes.values.reduce(0, +)
    }
}
