// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

/// What an entry of a random history says of itself in its metadata.
struct HistoryStamp: Sendable, Hashable {
    var number: UInt64
    var length: Int
    var freshening: UInt64 = 0
    var tag: String?

    init(number: UInt64, length: Int, tag: String?) {
        (self.number, self.length, self.tag) = (number, length, tag)
    }

    init?(_ description: EntryDescription) {
        let parts = description.text.split(separator: ".").compactMap { UInt64($0) }
        guard parts.count == 3 else { return nil }
        self.init(number: parts[0], length: Int(parts[1]), tag: description.tags.first)
        freshening = parts[2]
    }

    var entryDescription: EntryDescription {
        EntryDescription("\(number).\(length).\(freshening)", tags: tag.map { [$0] } ?? [])
    }

    /// Noise at the start of every 64 bytes and one byte's worth between: bodies differ in every part, and are quick to make, also
    /// where nothing is optimized and a sanitizer looks on.
    var body: [UInt8] {
        var generator = SeededGenerator(seed: number)
        return [UInt8](unsafeUninitializedCapacity: length) { bytes, count in
            let bytes = UnsafeMutableRawBufferPointer(bytes)
            if let start = bytes.baseAddress { memset(start, Int32(truncatingIfNeeded: number), length) }
            var offset = 0
            while offset + 8 <= length {
                bytes.storeBytes(of: generator.next(), toByteOffset: offset, as: UInt64.self)
                offset += 64
            }
            count = length
        }
    }
}

/// One variant of one key.
struct HistoryName: Sendable, Hashable {
    let key: String
    let variant: String
}

/// Whether the world has stopped.
typealias StopQuestion = @Sendable () -> Bool

/// Works on keys of its own, and knows what each may hold: nothing, since all may be evicted, or one of a few stamps.
struct HistoryWorker: Sendable {
    let number: Int
    private var generator: SeededGenerator
    private var nextNumber: UInt64
    private(set) var allowed: [HistoryName: Set<HistoryStamp>] = [:]
    /// Every stamp that was ever tried, for what a loss of power leaves.
    private(set) var tried: [HistoryName: Set<HistoryStamp>] = [:]
    private(set) var findings: [String] = []
    /// Whether what power took of a body may be found damaged when it is read: a miss.
    var mayBeDamaged = false
    /// What was done lately, for people.
    private var told: [String] = []

    static let lengths = [0, 100, 900, 4_000, 8_000, 20_000, 70_000, 150_000]

    init(number: Int, seed: UInt64) {
        self.number = number
        generator = SeededGenerator(seed: seed &* 31 &+ UInt64(number))
        nextNumber = UInt64(number) << 32
    }

    var names: [HistoryName] {
        (0..<4).flatMap { key in ["a", "b"].map { HistoryName(key: "w\(number)k\(key)", variant: $0) } }
    }

    /// One random operation; what it did is unknown when the world has stopped by its end.
    mutating func step(_ store: DiskStore, isStopped: @escaping StopQuestion) async {
        guard let name = names.randomElement(using: &generator) else { return }
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<9: await put(name, store, isStopped)
        case 9..<11: await freshen(name, store, isStopped)
        case 11: await end(name, store, isStopped) { try await store.remove($0) }
        case 12: await invalidate(name.key, store, isStopped)
        case 13: await purge(store, isStopped)
        case 14:
            let pins = Int.random(in: 0..<3, using: &generator) == 0
            await end(name, store, nil) { _ = try await store.setPinned(pins, $0) }
        case 15: await abandon(name, store)
        default: await look(name, store, isStopped)
        }
    }

    private mutating func stamp() -> HistoryStamp {
        nextNumber += 1
        let length = Self.lengths.randomElement(using: &generator) ?? 0
        let tag = Bool.random(using: &generator) ? "w\(number)" : nil
        return HistoryStamp(number: nextNumber, length: length, tag: tag)
    }

    private mutating func put(_ name: HistoryName, _ store: DiskStore, _ isStopped: @escaping StopQuestion) async {
        let stamp = stamp()
        tried[name, default: []].insert(stamp)
        do {
            if stamp.number.isMultiple(of: 2) {
                try await store.put(
                    StoreKey(name.key),
                    variant: StoreKey(name.variant),
                    description: stamp.entryDescription,
                    body: ByteChunk(stamp.body),
                    now: .at(1)
                )
            } else {
                let writer = try await writer(name, stamp, store)
                try await writer.append(ByteChunk(stamp.body))
                try await writer.commit(nil, now: .at(1))
            }
            told.append("put \(name.key)\(name.variant) \(stamp.number) \(isStopped())")
            if isStopped() { allowed[name, default: []].insert(stamp) } else { allowed[name] = [stamp] }
        } catch {
            note(error, "put \(name)")
            if isStopped() || isFault(error) { allowed[name, default: []].insert(stamp) }
        }
    }

    private mutating func abandon(_ name: HistoryName, _ store: DiskStore) async {
        let stamp = stamp()
        guard let writer = try? await writer(name, stamp, store) else { return }
        try? await writer.append(ByteChunk(stamp.body))
        writer.abandon()
    }

    private func writer(
        _ name: HistoryName,
        _ stamp: HistoryStamp,
        _ store: DiskStore
    ) async throws -> any EntryWriter {
        try await store.write(
            StoreKey(name.key),
            variant: StoreKey(name.variant),
            description: stamp.entryDescription,
            expectedLength: nil,
            now: .at(1)
        )
    }

    private mutating func freshen(_ name: HistoryName, _ store: DiskStore, _ isStopped: @escaping StopQuestion) async {
        guard let entry = await entry(name, store, isStopped), var stamp = HistoryStamp(entry.description) else {
            return
        }
        nextNumber += 1
        stamp.freshening = nextNumber
        stamp.tag = Bool.random(using: &generator) ? "w\(number)" : nil
        tried[name, default: []].insert(stamp)
        do {
            let fresh = try await store.replaceDescription(of: entry, with: stamp.entryDescription, now: .at(1))
            told.append("fresh \(name.key)\(name.variant) \(stamp.number) \(fresh != nil) \(isStopped())")
            if isStopped() { allowed[name, default: []].insert(stamp) } else if fresh != nil { allowed[name] = [stamp] }
        } catch {
            note(error, "freshen \(name)")
            if isStopped() || isFault(error) { allowed[name, default: []].insert(stamp) }
        }
    }

    /// - Parameter isStopped: nil where the entry stays.
    private mutating func end(
        _ name: HistoryName,
        _ store: DiskStore,
        _ isStopped: StopQuestion?,
        _ body: (StoredEntry) async throws -> Void
    ) async {
        guard let entry = await entry(name, store, isStopped ?? { false }) else { return }
        do {
            try await body(entry)
            told.append("end \(name.key)\(name.variant) \(isStopped?() ?? true)")
            if let isStopped, !isStopped() { allowed[name] = [] }
        } catch {
            note(error, "end \(name)")
        }
    }

    private mutating func invalidate(_ key: String, _ store: DiskStore, _ isStopped: @escaping StopQuestion) async {
        do {
            try await store.invalidate(StoreKey(key))
            told.append("invalidate \(key) \(isStopped())")
            if isStopped() { return }
            for name in names where name.key == key { allowed[name] = [] }
        } catch {
            note(error, "invalidate \(key)")
        }
    }

    private mutating func purge(_ store: DiskStore, _ isStopped: @escaping StopQuestion) async {
        let form = Int.random(in: 0..<3, using: &generator)
        let prefix = "w\(number)k\(Int.random(in: 0..<4, using: &generator))"
        let selection: PurgeSelection =
            switch form {
            case 0: .tag("w\(number)")
            case 1: .keyPrefix(Array(prefix.utf8))
            default:
                .matching { [number] in $0.variant == StoreKey("a") && $0.key.hasPrefix(Array("w\(number)k".utf8)) }
            }
        do {
            _ = try await store.purge(selection, now: .at(1))
            told.append("purge \(form) \(prefix) \(isStopped())")
            if isStopped() { return }
            for name in names {
                allowed[name] = allowed[name]?.filter { stamp in
                    switch form {
                    case 0: stamp.tag == nil
                    case 1: !name.key.hasPrefix(prefix)
                    default: name.variant != "a"
                    }
                }
            }
        } catch {
            note(error, "purge")
        }
    }

    private mutating func look(_ name: HistoryName, _ store: DiskStore, _ isStopped: @escaping StopQuestion) async {
        guard let entry = await entry(name, store, isStopped) else { return }
        await check(entry, name, store, isStopped)
    }

    /// The entry under a name, judged by its stamp.
    private mutating func entry(_ name: HistoryName, _ store: DiskStore, _ isStopped: @escaping StopQuestion) async
        -> StoredEntry?
    {
        do {
            let found = try await store.get(name.key, now: .at(1)).first { $0.variant == StoreKey(name.variant) }
            if isStopped() { return nil }
            guard let found else { return nil }
            guard let stamp = HistoryStamp(found.description), allowed[name, default: []].contains(stamp) else {
                findings.append(
                    "\(name) holds \(found.description.text), allowed: \(allowed[name, default: []]), \(told.suffix(60))"
                )
                return nil
            }
            return found
        } catch {
            note(error, "look \(name)")
            return nil
        }
    }

    private mutating func check(
        _ entry: StoredEntry,
        _ name: HistoryName,
        _ store: DiskStore,
        _ isStopped: @escaping StopQuestion
    ) async {
        guard let stamp = HistoryStamp(entry.description) else { return findings.append("\(name): foreign metadata") }
        do {
            let bytes = try await store.wholeBody(of: entry)
            if bytes != stamp.body { findings.append("\(name) \(stamp): wrong bytes") }
        } catch {
            // It may have been evicted between look-up and reading.
            if error.code != .superseded, !isStopped() { note(error, "body of \(name)") }
        }
    }

    /// Looks at all names after a crash: what is there now is what counts from here on.
    mutating func survey(_ store: DiskStore, afterPowerLoss: Bool) async {
        told.append("opened")
        if afterPowerLoss { allowed = tried }
        for name in names {
            guard let entry = await entry(name, store, { false }), let stamp = HistoryStamp(entry.description) else {
                continue
            }
            if afterPowerLoss, !entry.needsValidation { findings.append("\(name) \(stamp): not to be validated") }
            // What power took of a body is found damaged when it is read: a miss.
            if !afterPowerLoss { await check(entry, name, store, { false }) }
            allowed[name] = [stamp]
        }
    }

    /// All was purged; where that is unknown, all may still be there.
    mutating func purgedAll() { allowed = [:] }

    private func isFault(_ error: any Error) -> Bool {
        ![.noSpace, .superseded, .tooLarge, .temporarilyUnavailable].contains((error as? StoreError)?.code)
            || (error as? StoreError)?.cause != nil
    }

    /// Errors that no history may give.
    private mutating func note(_ error: any Error, _ what: String) {
        told.append("\(what) threw \(error)")
        let code = (error as? StoreError)?.code
        if (code == .corrupt && !mayBeDamaged) || code == nil || code == .sealed {
            findings.append("\(what): \(error)")
        }
    }
}
