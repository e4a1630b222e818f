// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastTestKit
import HoldfastTesting
import Testing

@testable import HoldfastStorage

/// Random histories of a memory store over every eviction policy, against a list of what was written last.
@Suite("Histories of the memory store", .timeLimit(.minutes(600)))
struct StoreHistories {
    private static let strategies = EvictionStrategy.all + [.densityTinyLFU(beta: 0), .densityTinyLFU(beta: 1)]

    /// What a variant should be while it is there.
    private struct Known {
        var entry: StoredEntry
        let body: UInt64
        let length: Int
    }

    private struct Name: Hashable {
        let key: UInt64
        let variant: UInt64
    }

    private struct OpenWriter {
        let writer: any EntryWriter
        let name: Name
        let body: UInt64
        var length = 0
        var isSuperseded = false
    }

    /// A store, what it should hold, and what is wrong.
    private final class Run {
        var generator: SeededGenerator
        let capacity: Int
        let entrySize: Int
        /// The length of most bodies at most.
        var usualSize: Int { min(entrySize, 60_000) }
        let store: MemoryStore
        var known: [UInt64: [Name: Known]] = [:]
        /// The keys that are known, and some that were, in an order that is always the same.
        var keys: [UInt64] = []
        var writers: [OpenWriter] = []
        var faults = HistoryFaults()
        var step = 0
        var now: Int64 = 0
        var (lookups, found, written, replacements, newest) = (0, 0, 0, 0, UInt64(1) << 32)
        var last = StoreStatistics()

        init(_ strategy: EvictionStrategy, capacity: Int, name: String) {
            var generator = History.generator("store \(strategy) \(name)")
            self.capacity = capacity
            let limits = MemoryLimits(capacity: capacity, entrySize: capacity / 2, variants: 3)
            entrySize = limits.entrySize
            let seed = generator.next()
            store = MemoryStore(limits: limits, using: &generator) { strategy.makePolicy(capacity: $0, seed: seed) }
            self.generator = generator
        }

        private static func body(_ seed: UInt64, _ length: Int) -> [UInt8] {
            [UInt8](repeating: UInt8(truncatingIfNeeded: seed), count: length)
        }

        private func name() -> Name {
            let key = UInt64(generator.magnitude(upTo: 300))
            // Most keys have one variant, some have more than are kept.
            return Name(key: key, variant: key % 5 == 0 ? UInt64.random(in: 0..<5, using: &generator) : 0)
        }

        private func key(_ number: UInt64) -> StoreKey { StoreKey("k\(number % 7)/\(number)") }

        private func description() -> EntryDescription {
            EntryDescription(
                metadata: ByteChunk([UInt8](repeating: 1, count: generator.magnitude(upTo: min(2_000, capacity / 4)))),
                uselessAfter: generator.once(in: 3)
                    ? .at(now + Int64(generator.magnitude(upTo: 500)) - 100) : .distantFuture,
                tags: generator.once(in: 4) ? ["t\(Int.random(in: 0..<4, using: &generator))"] : []
            )
        }

        private func fault(_ text: String) { faults.check(false, at: step, text) }

        /// Looks a key up: what is shown was written last, and has its bytes.
        func get(_ number: UInt64) {
            let shown = store.peek(key(number), now: .at(now)) ?? []
            lookups += 1
            if !shown.isEmpty { found += 1 }
            for entry in shown { see(entry, number) }
            let variants = known[number] ?? [:]
            if shown.count > variants.count { fault("\(shown.count) variants of \(variants.count)") }
        }

        private func see(_ entry: StoredEntry, _ number: UInt64) {
            guard let mine = known[number]?.values.first(where: { $0.entry.variant == entry.variant }) else {
                return fault("key \(number) shows a variant that was taken away")
            }
            if mine.entry != entry { fault("key \(number) shows another version than was written last") }
            guard generator.once(in: 3) else { return }
            if store.peekBody(of: entry)?.array != Self.body(mine.body, mine.length) {
                fault("key \(number) shows other bytes")
            }
        }

        func beginWriter() async {
            let name = name()
            let expected =
                generator.once(in: 2) ? nil : generator.magnitude(upTo: generator.once(in: 9) ? .max : entrySize)
            let writer = try? await store.write(
                key(name.key),
                variant: StoreKey("v\(name.variant)"),
                description: description(),
                expectedLength: expected,
                now: .at(now)
            )
            if let writer { writers.append(OpenWriter(writer: writer, name: name, body: generator.next())) }
        }

        /// Appends to a writer, and ends it now and then.
        func goOn(commits: Bool = false) async {
            guard let index = writers.indices.randomElement(using: &generator) else { return }
            if !commits, generator.once(in: 2) {
                let writer = writers[index]
                let length = generator.magnitude(upTo: usualSize)
                let piece = Self.body(writer.body, length)
                do {
                    try await writer.writer.append(ByteChunk(piece))
                    writers[index].length += piece.count
                } catch {
                    writers.remove(at: index)
                    if error.code != .tooLarge && error.code != .noSpace { fault("append: \(error)") }
                }
                return
            }
            let writer = writers.remove(at: index)
            if generator.once(in: 8) { return writer.writer.abandon() }
            let entry = try? await writer.writer.commit(generator.once(in: 3) ? description() : nil, now: .at(now))
            guard let entry else { return }
            if writer.isSuperseded { fault("a superseded writer committed") }
            written += 1
            know(writer.name, Known(entry: entry, body: writer.body, length: writer.length))
            if store.peek(entry.key, now: .at(now))?.first != entry { fault("what was committed is not there") }
            lookups += 1
            found += 1
        }

        func put(_ number: UInt64, length: Int) async {
            let seed = generator.next()
            guard
                let writer = try? await store.write(
                    key(number),
                    variant: StoreKey("v0"),
                    description: description(),
                    expectedLength: length,
                    now: .at(now)
                )
            else { return }
            guard (try? await writer.append(ByteChunk(Self.body(seed, length)))) != nil else { return }
            guard let entry = try? await writer.commit(nil, now: .at(now)) else { return }
            written += 1
            know(Name(key: number, variant: 0), Known(entry: entry, body: seed, length: length))
        }

        /// Changes the description or the pin of what is there, or of what was.
        func change() async {
            guard let number = anyKnown(), let entry = first(number) else { return }
            if generator.once(in: 3) {
                let pinned = generator.once(in: 3)
                guard (try? await store.setPinned(pinned, entry)) == true else { return }
                update(number, entry.changed(isPinned: pinned), of: entry)
            } else if let changed = (try? await store.replaceDescription(of: entry, with: description(), now: .at(now)))
                ?? nil
            {
                update(number, changed, of: entry)
            }
        }

        private func anyKnown() -> UInt64? {
            while let index = keys.indices.randomElement(using: &generator) {
                if known[keys[index]]?.isEmpty == false { return keys[index] }
                keys.swapAt(index, keys.count - 1)
                keys.removeLast()
            }
            return nil
        }

        private func first(_ number: UInt64) -> StoredEntry? {
            known[number]?.min { $0.key.variant < $1.key.variant }?.value.entry
        }

        private func know(_ name: Name, _ mine: Known) {
            if known[name.key] == nil { keys.append(name.key) }
            if known[name.key, default: [:]].updateValue(mine, forKey: name) != nil { replacements += 1 }
        }

        private func update(_ number: UInt64, _ entry: StoredEntry, of old: StoredEntry) {
            for (name, mine) in known[number] ?? [:] where mine.entry.variant == old.variant {
                known[number]?[name]?.entry = entry
            }
        }

        func takeAway() async throws {
            let number = name().key
            switch Int.random(in: 0..<20, using: &generator) {
            case 0..<8:
                try await store.invalidate(key(number))
                known[number] = nil
                for index in writers.indices where writers[index].name.key == number {
                    writers[index].isSuperseded = true
                }
            case 8..<16:
                guard let entry = first(number) else { return }
                try await store.remove(entry)
                known[number] = known[number]?.filter { $0.value.entry.variant != entry.variant }
            case 16:
                let tag = "t\(Int.random(in: 0..<4, using: &generator))"
                try await purge(.tag(tag)) { $0.description.tags.contains(tag) }
            case 17:
                let prefix = Array("k\(number % 7)/".utf8)
                try await purge(.keyPrefix(prefix)) { $0.key.hasPrefix(prefix) }
            case 18: try await purge(.matching { $0.bodyLength % 3 == 0 }) { $0.bodyLength % 3 == 0 }
            default: try await purge(.all) { _ in true }
            }
        }

        private func purge(_ selection: PurgeSelection, _ takes: (StoredEntry) -> Bool) async throws {
            let before = store.statistics
            let count = try await store.purge(selection, now: .at(now))
            let after = store.statistics
            let removed = after.entriesRemoved - before.entriesRemoved
            // By uses that were noted before and that the policy hears of now.
            let evicted = after.entriesEvicted - before.entriesEvicted
            if count != removed || before.entryCount - removed - evicted != after.entryCount {
                fault("purge of \(selection) gave \(count ?? -1), from \(before) to \(after)")
            }
            for number in known.keys { known[number] = known[number]?.filter { !takes($0.value.entry) } }
            // Which writers a purge meets by their descriptions is asked elsewhere; here none of them goes on.
            for writer in writers { writer.writer.abandon() }
            writers = []
        }

        /// The numbers that must hold after every call.
        func count() {
            let statistics = store.statistics
            let left = written - statistics.entriesRemoved - statistics.entriesEvicted - statistics.entryCount
            let isRight =
                (0...capacity).contains(statistics.bytesUsed) && statistics.entryCount >= 0
                && statistics.lookups == lookups && statistics.lookupsFound == found
                && statistics.entriesWritten == written
                && (0...replacements).contains(left) && statistics.entriesEvicted >= last.entriesEvicted
                && statistics.entryCount * MemoryStore.overhead <= statistics.bytesUsed
            if !isRight {
                fault("\(statistics), \(lookups) look-ups, \(found) found, \(written) written, \(left) replaced")
            }
            last = statistics
        }

        /// What is listed is what is known, and its bytes add up; what is known and not listed has left.
        func countAll() async throws {
            let listed = try await store.list(after: nil, limit: .max, now: .at(now)).listed
            let statistics = store.statistics
            var all: [StoreKey: [StoreKey: StoredEntry]] = [:]
            for known in known.values.joined() {
                all[known.value.entry.key, default: [:]][known.value.entry.variant] = known.value.entry
            }
            for item in listed where all[item.entry.key]?[item.entry.variant] != item.entry {
                fault("lists what is not known")
            }
            if listed.count != statistics.entryCount { fault("lists \(listed.count) of \(statistics.entryCount)") }
            let bytes = listed.reduce(0) { $0 + $1.bytes }
            if writers.isEmpty ? bytes != statistics.bytesUsed : bytes > statistics.bytesUsed {
                fault("\(bytes) bytes listed, \(statistics.bytesUsed) used")
            }
            // What has left is not waited for any more.
            let there = Set(listed.map(\.entry.version))
            for number in known.keys {
                known[number] = known[number]?.filter { there.contains($0.value.entry.version) }
                if known[number]?.isEmpty == true { known[number] = nil }
            }
        }

        func mixed() async throws {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<40: get(name().key)
            case 40..<52:
                await put(name().key, length: generator.magnitude(upTo: generator.once(in: 50) ? entrySize : usualSize))
            case 52..<64: await beginWriter()
            case 64..<84: await goOn()
            case 84..<92: await change()
            case 92..<99: try await takeAway()
            default: store.trim(to: generator.magnitude(upTo: .max) - 5)
            }
        }

        /// One kind of call alone, for so many steps.
        func oneSided(_ kind: Int) async throws {
            switch kind {
            case 0: await put(newKey(), length: generator.magnitude(upTo: min(2_000, entrySize)))
            case 1: get(newKey())
            case 2: get(keys.first ?? 1)
            case 3: try await takeAway()
            case 4: await change()
            case 5: await goOn(commits: true)
            default:
                let number = newKey()
                await put(number, length: generator.magnitude(upTo: 30))
                try await store.invalidate(key(number))
                known[number] = nil
            }
        }

        private func newKey() -> UInt64 {
            newest += 1
            return newest
        }

        func run(_ steps: Int) async throws {
            var kind: Int?
            var until = 0
            while step < steps, faults.all.isEmpty {
                if step >= until {
                    kind = generator.once(in: 2) ? Int.random(in: 0..<7, using: &generator) : nil
                    until = step + 1 + generator.magnitude(upTo: max(60, steps / 6))
                }
                step += 1
                // Time stands, goes on and jumps, back as well.
                if generator.once(in: 40) {
                    now = Int64(generator.magnitude(upTo: 1 << 40)) * (generator.once(in: 4) ? -1 : 1)
                }
                now += Int64(generator.magnitude(upTo: 3))
                if let kind { try await oneSided(kind) } else { try await mixed() }
                if writers.count > 12 { await goOn(commits: true) }
                if step % 8 == 0 { count() }
                if step % 1_024 == 0 { try await countAll() }
            }
            for writer in writers { writer.writer.abandon() }
            writers = []
            try await countAll()
            count()
            for known in known.values.joined() where known.value.entry.isPinned {
                _ = try await store.setPinned(false, known.value.entry)
            }
            store.trim(to: 0)
            let left = store.statistics
            if left.bytesUsed != 0 || left.entryCount != 0 {
                fault("\(left.bytesUsed) bytes are left of \(left.entryCount)")
            }
        }
    }

    @Test(
        "Reads return the last write, the capacity is never exceeded, and the counts add up",
        arguments: StoreHistories.strategies
    )
    func store(strategy: EvictionStrategy) async throws {
        let capacities = [1_000, 8_000, 60_000, 1 << 20, 64 << 20]
        let rounds = max(1, History.steps / 2_000_000)
        let steps = History.steps(percent: 15, among: StoreHistories.strategies.count * capacities.count * rounds)
        for capacity in capacities {
            for round in 0..<rounds {
                let run = Run(strategy, capacity: capacity, name: "\(capacity) \(round)")
                try await run.run(steps)
                #expect(run.faults.all == [], "\(strategy), \(capacity) bytes, round \(round), seed \(History.seed)")
            }
        }
    }
}
