// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting

/// Callers that get and put on a small store for long, and what they saw.
///
/// 40,000 keys, 70 % of the requests to a hot set; half of the requests put. Every body follows from its key and from the number of
/// its put, so that a wrong byte shows.
struct DiskLoad: Sendable {
    /// What else happens beside gets and puts.
    struct Extras: OptionSet, Sendable, Hashable, CustomStringConvertible {
        let rawValue: Int
        /// One put in 50 has a body with a file of its own.
        static let blobs = Extras(rawValue: 1)
        /// Entries are pinned and released.
        static let pins = Extras(rawValue: 2)
        /// Bodies are held open over many other requests, and half-written ones, too.
        static let slowReaders = Extras(rawValue: 4)
        /// Entries are freshened, removed and invalidated.
        static let changes = Extras(rawValue: 8)
        /// Bodies have 100 bytes to 2 MB, most of them few; a third of the hits freshens, as a shared cache does.
        static let web = Extras(rawValue: 16)

        static let all: Extras = [.blobs, .pins, .slowReaders, .changes]

        var description: String {
            let names = [
                (Extras.blobs, "blobs"), (.pins, "pins"), (.slowReaders, "slow readers"), (.changes, "changes"),
                (.web, "web"),
            ]
            return names.filter { contains($0.0) }.map(\.1).joined(separator: "+")
        }
    }

    /// What happened.
    struct Outcome: Sendable {
        var requests = 0
        var puts = 0
        var bytesPut = 0
        var hits = 0
        /// Puts that failed, by what the store said.
        var failures: [String: Int] = [:]
        /// Sentences about what must never be.
        var faults: [String] = []
        var slowestPut = Duration.zero
        /// The most bytes seen on the disk.
        var peak = 0

        mutating func fault(_ what: String) { if faults.count < 10 { faults.append(what) } }
    }

    /// When a caller stops.
    enum End: Sendable {
        case bytes(Int)
        case seconds(Double)
    }

    let capacity: Int
    let callers: Int
    let extras: Extras
    var keys = 40_000
    var hotKeys = 2_000
    var bodies = 1_000...30_000

    /// Runs all callers on a store; each looks now and then at how many bytes there are on the disk.
    func run(
        _ store: DiskStore,
        until end: End,
        seed: UInt64,
        bytesOnDisk: @escaping @Sendable () -> Int
    ) async -> Outcome {
        await withTaskGroup(of: Outcome.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    var work = Caller(load: self, store: store, seed: seed &* 1_000 &+ UInt64(caller))
                    await work.run(until: end, callers: callers, bytesOnDisk)
                    return work.outcome
                }
            }
            var all = Outcome()
            for await outcome in group { all.add(outcome) }
            return all
        }
    }

    /// The body of a put, by words.
    static func body(key: Int, put: UInt64, count: Int) -> [UInt8] {
        var word = UInt64(key) &* 0x9E37_79B9_7F4A_7C15 ^ put &* 0xBF58_476D_1CE4_E5B9
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            var place = 0
            while place + 8 <= count {
                raw.storeBytes(of: word, toByteOffset: place, as: UInt64.self)
                word = word &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                place += 8
            }
            while place < count {
                raw[place] = UInt8(truncatingIfNeeded: word)
                place += 1
            }
            filled = count
        }
    }
}

extension DiskLoad.Outcome {
    mutating func add(_ other: Self) {
        requests += other.requests
        puts += other.puts
        bytesPut += other.bytesPut
        hits += other.hits
        failures.merge(other.failures, uniquingKeysWith: +)
        faults += other.faults
        slowestPut = max(slowestPut, other.slowestPut)
        peak = max(peak, other.peak)
    }
}

/// One caller of a load.
private struct Caller {
    let load: DiskLoad
    let store: DiskStore
    var generator: SeededGenerator
    var outcome = DiskLoad.Outcome()
    private var nextPut: UInt64
    private var held: [(body: any StoredBody, expected: [UInt8])] = []
    private var halfWritten: [any EntryWriter] = []
    private var pinned: [StoredEntry] = []

    init(load: DiskLoad, store: DiskStore, seed: UInt64) {
        self.load = load
        self.store = store
        generator = SeededGenerator(seed: seed)
        nextPut = seed << 32
    }

    mutating func run(until end: DiskLoad.End, callers: Int, _ bytesOnDisk: () -> Int) async {
        let start = ContinuousClock.now
        while outcome.faults.isEmpty {
            switch end {
            case .bytes(let bytes): if outcome.bytesPut >= bytes / callers { return await finish() }
            case .seconds(let seconds):
                if outcome.requests % 16 == 0, start.duration(to: .now) >= .seconds(seconds) { return await finish() }
            }
            // So that a store that refuses everything ends a run by bytes, too.
            if outcome.failures.values.reduce(0, +) > 1_000 { return await finish() }
            await step()
            if outcome.requests % 100 == 0 { outcome.peak = max(outcome.peak, bytesOnDisk()) }
        }
    }

    private mutating func step() async {
        outcome.requests += 1
        let hot = load.hotKeys
        let isHot = Int.random(in: 0..<10, using: &generator) < 7
        let key = isHot ? Int.random(in: 0..<hot, using: &generator) : Int.random(in: 0..<load.keys, using: &generator)
        let puts = load.extras.contains(.web) ? 1 : 10
        if Int.random(in: 0..<20, using: &generator) < puts { return await put(key) }
        do {
            let entries = try await store.entries(for: StoreKey("k\(key)"), now: .at(0))
            if let entry = entries.first {
                outcome.hits += 1
                try await check(entry, key: key)
                try await change(entry, key: key)
            } else {
                await put(key)
            }
        } catch let error as StoreError {
            if error.code != .superseded { outcome.fault("get of k\(key): \(error)") }
        } catch {
            outcome.fault("\(error)")
        }
    }

    private func expected(_ entry: StoredEntry, key: Int) -> [UInt8]? {
        guard let number = UInt64(entry.description.text) else { return nil }
        return DiskLoad.body(key: key, put: number, count: entry.bodyLength)
    }

    private mutating func check(_ entry: StoredEntry, key: Int) async throws {
        guard let expected = expected(entry, key: key) else { return outcome.fault("k\(key): metadata is wrong") }
        let body = try await store.body(of: entry)
        if load.extras.contains(.slowReaders), held.count < 4, Int.random(in: 0..<30, using: &generator) == 0 {
            held.append((body, expected))
            if held.count == 4 { try await readHeld() }
            return
        }
        if try await body.whole() != expected { outcome.fault("k\(key): a byte is wrong") }
    }

    private mutating func readHeld() async throws {
        for (body, expected) in held where try await body.whole() != expected { outcome.fault("a held body is wrong") }
        held = []
    }

    private mutating func change(_ entry: StoredEntry, key: Int) async throws {
        let dice = Int.random(in: 0..<100, using: &generator)
        if load.extras.contains(.pins), dice < 2 {
            if try await store.setPinned(true, entry) { pinned.append(entry) }
            if pinned.count > 60 { _ = try await store.setPinned(false, pinned.removeFirst()) }
        }
        if load.extras.contains(.web), dice >= 67 {
            _ = try await store.replaceDescription(of: entry, with: entry.description, now: .at(0))
        }
        guard load.extras.contains(.changes) else { return }
        switch dice {
        case 10..<14: _ = try await store.replaceDescription(of: entry, with: entry.description, now: .at(0))
        case 14: try await store.remove(entry)
        case 15: try await store.invalidate(StoreKey("k\(key)"))
        default: break
        }
    }

    private mutating func put(_ key: Int) async {
        let hasBlob = load.extras.contains(.blobs) && Int.random(in: 0..<50, using: &generator) == 0
        let count =
            load.extras.contains(.web)
            ? Int(pow(10, 2 + 4.3 * pow(Double.random(in: 0..<1, using: &generator), 3)))
            : hasBlob
                ? Int.random(in: 130_000...280_000, using: &generator) : Int.random(in: load.bodies, using: &generator)
        nextPut += 1
        let bytes = ByteChunk(DiskLoad.body(key: key, put: nextPut, count: count))
        let start = ContinuousClock.now
        do {
            if Bool.random(using: &generator) {
                try await store.put(
                    StoreKey("k\(key)"),
                    variant: StoreKey(""),
                    description: EntryDescription("\(nextPut)"),
                    body: bytes,
                    now: .at(0)
                )
                (outcome.puts, outcome.bytesPut) = (outcome.puts + 1, outcome.bytesPut + count)
                outcome.slowestPut = max(outcome.slowestPut, start.duration(to: .now))
                return
            }
            let writer = try await store.write(
                StoreKey("k\(key)"),
                variant: StoreKey(""),
                description: EntryDescription("\(nextPut)"),
                expectedLength: count,
                now: .at(0)
            )
            if hasBlob {
                try await writer.append(bytes[0..<(count / 2)])
                if load.extras.contains(.slowReaders), Int.random(in: 0..<4, using: &generator) == 0 {
                    halfWritten.append(writer)
                    if halfWritten.count > 1 { halfWritten.removeFirst().abandon() }
                    return
                }
                try await writer.append(bytes[(count / 2)..<count])
            } else {
                try await writer.append(bytes)
            }
            _ = try await writer.commit(nil, now: .at(0))
            outcome.puts += 1
            outcome.bytesPut += count
        } catch {
            if error.code != .superseded { outcome.failures["\(error.code): \(error.message)", default: 0] += 1 }
        }
        outcome.slowestPut = max(outcome.slowestPut, start.duration(to: .now))
    }

    private mutating func finish() async {
        try? await readHeld()
        for writer in halfWritten { writer.abandon() }
        for entry in pinned { _ = try? await store.setPinned(false, entry) }
    }
}
