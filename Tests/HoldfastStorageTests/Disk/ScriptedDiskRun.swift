// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

/// A run over all operations of a store on the disk, and what its caller was told meanwhile: by that any store that is later
/// opened on the same files is judged.
struct ScriptedDiskRun {
    static let capacity = 1 << 20
    /// Bytes that a record holds, and bytes that need a blob of two chunks.
    private static let lengths = [7_000, 70_000, 0, 300]

    /// What is known of one key and variant.
    private struct Told {
        var key: String
        /// The number of the newest put that was acknowledged, nothing having removed it since.
        var acknowledged: Int?
        /// The number of the newest put that was tried.
        var tried = 0
        /// Puts up to this number were removed, and that was acknowledged.
        var goneUpTo = 0
        /// Whether a removal failed since the newest put: either outcome is right.
        var mayBeGone = false
        var isPinned = false
    }

    private var told: [String: Told] = [:]
    private var number = 0
    /// Errors that callers got.
    private(set) var refusals = 0

    static func open(_ files: SimulatedFileSystem) async throws(StoreError) -> DiskStore {
        try await DiskStore.open(directory: "/store", capacity: capacity, fileSystem: files, now: .at(0))
    }

    static func body(_ name: String, _ number: Int) -> [UInt8] {
        let name: Int = name.utf8.reduce(0) { hash, byte in hash &* 7 &+ Int(byte) }
        var generator = SeededGenerator(seed: UInt64(number) &* 31 &+ UInt64(name))
        let count = lengths[number % lengths.count]
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
        return Array(bytes.prefix(count))
    }

    // MARK: The run

    /// Goes through every operation; with `fills` through so many puts that segments are reclaimed, too.
    mutating func play(_ store: DiskStore, fills: Bool = false) async {
        await put(store, "early")
        await removal(["early"]) { try await store.purge(.all, now: .at(1)) }
        for _ in 0..<4 { await put(store, "written over") }
        for variant in ["1", "2", "1"] { await put(store, "two", variant) }
        for key in ["inline", "blob", "empty", "short"] { await put(store, key) }
        for key in ["inline", "blob"] { await freshen(store, key) }
        await pin(store, "short")
        await pin(store, "blob")
        for variant in ["1", "2"] { await put(store, "halved", variant) }
        await removal(["halved"], variant: "1") {
            let entries = try await store.get("halved")
            if let entry = entries.first(where: { $0.variant == StoreKey("1") }) { try await store.remove(entry) }
        }
        for variant in ["1", "2"] { await put(store, "invalid", variant) }
        await removal(["invalid"]) { try await store.invalidate(StoreKey("invalid")) }
        for _ in 0..<2 { await put(store, "back") }
        await removal(["back"]) { try await store.invalidate(StoreKey("back")) }
        await put(store, "back")
        for key in ["tag/1", "tag/2"] { await put(store, key, tags: ["t"]) }
        await removal(["tag/1", "tag/2"]) { try await store.purge(.tag("t"), now: .at(1)) }
        for key in ["prefix/1", "prefix/2"] { await put(store, key) }
        await removal(["prefix/1", "prefix/2"]) {
            try await store.purge(.keyPrefix(Array("prefix/".utf8)), now: .at(1))
        }
        for key in ["match/1", "match/2"] { await put(store, key) }
        await removal(["match/1", "match/2"]) {
            try await store.purge(.matching { $0.key.hasPrefix(Array("match/".utf8)) }, now: .at(1))
        }
        await put(store, "tag/1", tags: ["t"])
        await abandon(store)
        if fills {
            for round in 0..<56 {
                await put(store, "fill/\(round)")
                if round % 8 == 0 { _ = try? await store.get("inline") }
            }
        }
        await put(store, "last")
        _ = try? await store.list(after: nil, limit: 100, now: .at(1))
    }

    private mutating func put(_ store: DiskStore, _ key: String, _ variant: String = "", tags: Set<String> = []) async {
        number += 1
        let name = key + "/" + variant
        told[name, default: Told(key: key)].tried = number
        do {
            let description = EntryDescription("\(number)", tags: tags)
            try await store.put(key, variant: variant, Self.body(name, number), description)
            told[name]?.acknowledged = number
            told[name]?.mayBeGone = false
        } catch {
            noteRefusal(error)
        }
    }

    private mutating func removal(_ keys: [String], variant: String? = nil, _ step: () async throws -> Void) async {
        func isMeant(_ name: String, _ told: Told) -> Bool {
            keys.contains(told.key) && (variant.map { name == told.key + "/" + $0 } ?? true)
        }
        do {
            try await step()
            for (name, told) in told where isMeant(name, told) {
                self.told[name]?.goneUpTo = number
                self.told[name]?.acknowledged = nil
                self.told[name]?.mayBeGone = false
            }
        } catch {
            noteRefusal(error)
            for (name, told) in told where isMeant(name, told) { self.told[name]?.mayBeGone = true }
        }
    }

    private mutating func freshen(_ store: DiskStore, _ key: String) async {
        do {
            guard let entry = try await store.get(key).first else { return }
            _ = try await store.replaceDescription(
                of: entry,
                with: EntryDescription(entry.description.text),
                now: .at(1)
            )
        } catch {
            noteRefusal(error)
        }
    }

    private mutating func pin(_ store: DiskStore, _ key: String) async {
        do {
            guard let entry = try await store.get(key).first else { return }
            if try await store.setPinned(true, entry) { told[key + "/"]?.isPinned = true }
            _ = try await store.wholeBody(of: entry)
        } catch {
            noteRefusal(error)
        }
    }

    private mutating func abandon(_ store: DiskStore) async {
        do {
            let writer = try await store.write(
                StoreKey("abandoned"),
                variant: StoreKey(""),
                description: EntryDescription("m"),
                expectedLength: nil,
                now: .at(0)
            )
            try await writer.append(ByteChunk([UInt8](repeating: 1, count: 150_000)))
            writer.abandon()
        } catch {
            noteRefusal(error)
        }
    }

    private mutating func noteRefusal(_ error: any Error) {
        refusals += 1
        if !(error is StoreError) { Issue.record(error, "an error of another kind reached the caller") }
    }

    // MARK: The judge

    /// What lies between the run and its judge.
    enum Ending: Sendable {
        /// Nothing that costs an entry: all is there.
        case harmless
        /// Entries may have been evicted; pinned ones stay nevertheless.
        case eviction
        /// A loss of power: the newest changes may be lost, so whatever is shown must say that it needs validation.
        case powerLoss
        /// A loss of power after a clean close: changes are durable and bodies may be lost.
        case cleanPowerLoss

        var mayLoseBytes: Bool { self == .powerLoss || self == .cleanPowerLoss }
    }

    /// Compares all that a store shows with what was told.
    func check(_ store: DiskStore, after ending: Ending, _ comment: String) async throws {
        for key in Set(told.values.map(\.key)) {
            guard let entries = try await shown(store, key, ending, comment) else { continue }
            var seen: Set<String> = []
            for entry in entries {
                let name = key + "/" + String(decoding: entry.variant.bytes, as: UTF8.self)
                let number = try #require(Int(entry.description.text), "\(comment): \(name)")
                let told = try #require(told[name], "\(comment): \(name) was never written")
                do {
                    #expect(try await store.wholeBody(of: entry) == Self.body(name, number), "\(comment): \(name)")
                } catch {
                    guard ending.mayLoseBytes, error.code == .corrupt else { throw error }
                    continue
                }
                #expect(seen.insert(name).inserted, "\(comment): \(name) is shown twice")
                if ending == .powerLoss {
                    #expect(entry.needsValidation, "\(comment): \(name) is trusted")
                    continue
                }
                #expect(number > told.goneUpTo, "\(comment): \(name) \(number) came back")
                #expect(number >= told.acknowledged ?? 0, "\(comment): \(name) \(number) is superseded")
                #expect(number <= told.tried, "\(comment): \(name)")
                #expect(!entry.needsValidation, "\(comment): \(name) is suspect without need")
                if told.isPinned, told.acknowledged != nil {
                    #expect(entry.isPinned, "\(comment): \(name) lost its pin")
                }
            }
            if ending.mayLoseBytes { continue }
            for (name, told) in told where told.key == key && told.acknowledged != nil && !told.mayBeGone {
                if ending == .harmless || told.isPinned { #expect(seen.contains(name), "\(comment): \(name) is lost") }
            }
        }
        #expect(try await store.get("abandoned").isEmpty, "\(comment)")
    }

    /// The variants of a key; nil where a loss of power took their bytes, which is found when they are read.
    private func shown(
        _ store: DiskStore,
        _ key: String,
        _ ending: Ending,
        _ comment: String
    ) async throws -> [StoredEntry]? {
        do {
            return try await store.get(key)
        } catch {
            if ending.mayLoseBytes, error.code == .corrupt { return nil }
            Issue.record(error, "\(comment): \(key)")
            return nil
        }
    }
}

extension SimulatedFileSystem {
    /// The whole blocks of the segments and blobs of the store that a scripted run uses.
    var segmentAndBlobBytes: Int {
        paths.filter { $0.hasSuffix(".seg") || $0.hasSuffix(".blob") }.reduce(0) { sum, path in
            sum + ((contents(of: path)?.count ?? 0) + 4_095) / 4_096 * 4_096
        }
    }
}
