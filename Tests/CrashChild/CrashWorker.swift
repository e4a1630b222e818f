// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import HoldfastTesting
internal import Synchronization

/// Numbers operations and prints the log.
final class CrashLog: Sendable {
    private let last = Mutex(0)
    private let print: @Sendable (String) -> Void

    init(print: @escaping @Sendable (String) -> Void) {
        self.print = print
    }

    func note(_ line: CrashLine) {
        print("\(line)\n")
    }

    /// Logs the beginning of an operation, does it, and logs how it ended.
    func run(
        _ operation: CrashOperation,
        _ body: () async throws(StoreError) -> CrashOutcome
    ) async {
        let number = last.withLock { last in
            last += 1
            return last
        }
        note(.begin(number, operation))
        do throws(StoreError) {
            note(.done(number, try await body()))
        } catch {
            note(.done(number, CrashOutcome(word: error.code.description)))
        }
    }
}

/// Works on keys of its own, one operation after the other; its purges also hit the keys of others.
struct CrashWorker {
    let number: Int
    let store: DiskStore
    let log: CrashLog
    var generator: SeededGenerator
    /// Numbers that no other worker and no other run uses.
    var nextStamp: UInt64

    private static let tags = ["a", "b", "c"]
    private let now = StoreInstant(milliseconds: 1)
    private var hasToldEviction = false

    init(number: Int, store: DiskStore, log: CrashLog, seed: UInt64, firstStamp: UInt64) {
        self.number = number
        self.store = store
        self.log = log
        generator = SeededGenerator(seed: seed)
        nextStamp = firstStamp
    }

    mutating func step() async {
        let identity = CrashIdentity(
            key: pick(CrashIdentity.keys(of: number)),
            variant: pick(CrashIdentity.variants)
        )
        switch Int.random(in: 0..<200, using: &generator) {
        case 0: await purge(.all)
        case 1..<7: await purge(.tag(pick(Self.tags)))
        case 7..<10: await purge(.prefix("w\(Int.random(in: 0..<CrashIdentity.workers, using: &generator))"))
        case 10..<13: await purge(.prefix(identity.key))
        case 13..<15: await purge(.variant(identity.variant))
        case 15..<28: await invalidate(identity.key)
        case 28..<41: await remove(identity)
        case 41..<55: await pin(identity)
        case 55..<80: await get(identity)
        case 80..<110: await freshen(identity)
        default: await put(identity)
        }
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &generator)]
    }

    private mutating func stampNumber() -> UInt64 {
        nextStamp += 1
        return nextStamp
    }

    private mutating func someTags() -> Set<String> {
        let bits = Int.random(in: 0..<8, using: &generator)
        return Set(Self.tags.indices.filter { bits >> $0 & 1 == 1 }.map { Self.tags[$0] })
    }

    /// Mostly small, now and then up to 1 MiB.
    private mutating func someLength() -> Int {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0, 1: 0
        case 2..<9: Int.random(in: 1..<1_024, using: &generator)
        case 9..<16: Int.random(in: 1_024..<65_536, using: &generator)
        case 16..<19: Int.random(in: 65_536..<262_144, using: &generator)
        default: Int.random(in: 262_144...1_048_576, using: &generator)
        }
    }

    private mutating func put(_ identity: CrashIdentity) async {
        let stamp = CrashStamp(put: stampNumber(), length: someLength(), tags: someTags())
        let body = ByteChunk(stamp.body(of: identity))
        let pieces = Int.random(in: 1...4, using: &generator)
        let knowsLength = Bool.random(using: &generator)
        let isOneStep = Bool.random(using: &generator)
        await log.run(.put(identity, stamp)) { [store, now] () throws(StoreError) in
            if isOneStep {
                try await store.put(
                    identity.storeKey,
                    variant: identity.storeVariant,
                    description: stamp.entryDescription,
                    body: body,
                    now: now
                )
                return .ok
            }
            let writer = try await store.write(
                identity.storeKey,
                variant: identity.storeVariant,
                description: stamp.entryDescription,
                expectedLength: knowsLength ? body.count : nil,
                now: now
            )
            for piece in 0..<pieces {
                let range = (body.count * piece / pieces)..<(body.count * (piece + 1) / pieces)
                try await writer.append(body[range])
            }
            try await writer.commit(nil, now: now)
            return .ok
        }
        if !hasToldEviction, store.statistics.entriesEvicted > 0 {
            hasToldEviction = true
            log.note(.evicted)
        }
    }

    /// The entry that is there, which only this worker and purges change.
    private func entry(_ identity: CrashIdentity) async -> (StoredEntry, CrashStamp)? {
        do {
            let entries = try await store.entries(for: identity.storeKey, now: now)
            guard let entry = entries.first(where: { $0.variant == identity.storeVariant }) else { return nil }
            guard let stamp = CrashStamp(entry.description) else {
                log.note(.wrong("\(identity) has foreign metadata"))
                return nil
            }
            return (entry, stamp)
        } catch {
            log.note(.wrong("look-up of \(identity): \(error.code)"))
            return nil
        }
    }

    private mutating func get(_ identity: CrashIdentity) async {
        // Another worker's keys too: its changes go on meanwhile.
        let other = CrashIdentity(key: pick(CrashIdentity.all).key, variant: identity.variant)
        guard let (entry, stamp) = await entry(other) else { return }
        if let fault = await CrashSurvey.fault(in: entry, stamp, other, store, mayBeGone: true) {
            log.note(.wrong("\(other) \(stamp) while others write: \(fault)"))
        }
    }

    private mutating func freshen(_ identity: CrashIdentity) async {
        guard let (entry, old) = await entry(identity) else { return }
        var stamp = old
        stamp.freshening = stampNumber()
        stamp.tags = someTags()
        let description = stamp.entryDescription
        await log.run(.freshen(identity, stamp)) { [store, now] () throws(StoreError) in
            try await store.replaceDescription(of: entry, with: description, now: now) == nil ? .gone : .ok
        }
    }

    private mutating func remove(_ identity: CrashIdentity) async {
        guard let (entry, _) = await entry(identity) else { return }
        await log.run(.remove(identity)) { [store] () throws(StoreError) in
            try await store.remove(entry)
            return .ok
        }
    }

    private mutating func invalidate(_ key: String) async {
        await log.run(.invalidate(key)) { [store] () throws(StoreError) in
            try await store.invalidate(StoreKey(Array(key.utf8)))
            return .ok
        }
    }

    private mutating func pin(_ identity: CrashIdentity) async {
        guard let (entry, _) = await entry(identity) else { return }
        let isPinned = Int.random(in: 0..<3, using: &generator) == 0
        await log.run(.pin(identity, isPinned)) { [store] () throws(StoreError) in
            try await store.setPinned(isPinned, entry) ? .ok : .refused
        }
    }

    private mutating func purge(_ purge: CrashPurge) async {
        let selection: PurgeSelection =
            switch purge {
            case .all: .all
            case .tag(let tag): .tag(tag)
            case .prefix(let prefix): .keyPrefix(Array(prefix.utf8))
            case .variant(let variant): .matching { $0.variant == StoreKey(Array(variant.utf8)) }
            }
        await log.run(.purge(purge)) { [store, now] () throws(StoreError) in
            try await store.purge(selection, now: now)
            return .ok
        }
    }
}
