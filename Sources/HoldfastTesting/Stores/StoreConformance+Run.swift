// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import Synchronization

/// One run of one law: makes stores and gathers findings.
final class LawRun: Sendable {
    let seed: UInt64
    private let law: String
    private let factory: StoreFactory
    private let found = Mutex<[StoreConformance.Finding]>([])

    init(law: String, factory: StoreFactory, seed: UInt64) {
        self.law = law
        self.factory = factory
        self.seed = seed
    }

    var findings: [StoreConformance.Finding] { found.withLock { $0 } }

    /// Runs `body` with a new store, closes it and cleans up.
    func with(capacity: Int = 16 << 20, _ body: (any CacheStore, StoreSubject) async throws -> Void) async throws {
        let subject = try await factory.make(capacity)
        defer { subject.cleanUp() }
        do {
            try await body(subject.store, subject)
        } catch {
            await subject.store.close()
            throw error
        }
        await subject.store.close()
    }

    /// Runs `body` with a new store.
    func with(capacity: Int = 16 << 20, _ body: (any CacheStore) async throws -> Void) async throws {
        try await with(capacity: capacity) { store, _ in try await body(store) }
    }

    /// Runs `first`, closes the store, opens it again and runs `second`; nothing for a store that keeps nothing.
    func withRestart<Kept>(
        capacity: Int = 16 << 20,
        _ first: (any CacheStore) async throws -> Kept,
        then second: (any CacheStore, Kept) async throws -> Void
    ) async throws {
        try await with(capacity: capacity) { store, subject in
            guard let reopen = subject.reopen else { return }
            let kept = try await first(store)
            await store.close()
            let reopened = try await reopen()
            do {
                try await second(reopened, kept)
            } catch {
                await reopened.close()
                throw error
            }
            await reopened.close()
        }
    }

    /// Adds a finding; after twenty of them no more.
    func report(_ message: String) {
        let finding = StoreConformance.Finding(law: law, message: "\(factory), seed \(seed): \(message)")
        found.withLock { if $0.count < 20 { $0.append(finding) } }
    }

    /// Adds a finding unless `holds`.
    func check(_ holds: Bool, _ message: @autoclosure () -> String) {
        if !holds { report(message()) }
    }

    /// Adds a finding unless both values are equal.
    func equal<Value: Equatable>(_ value: Value, _ expected: Value, _ what: @autoclosure () -> String) {
        if value != expected { report("\(what()): \(brief(value)), not \(brief(expected))") }
    }

    /// Adds a finding unless `body` throws a ``StoreError`` with this code.
    func throwing(_ code: StoreError.Code, _ what: String, _ body: () async throws -> Void) async {
        let seen = await self.code(body)
        if seen != code.description { report("\(what) gave \(seen ?? "no error"), not \(code)") }
    }

    /// The code with which `body` failed, another error's description, or nil.
    func code(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch let error as StoreError {
            return error.code.description
        } catch {
            return "\(error)"
        }
    }

    private func brief(_ value: some Equatable) -> String {
        if let bytes = value as? [UInt8], bytes.count > 16 { return "\(bytes.count) bytes" }
        return String("\(value)".prefix(400))
    }
}

extension SeededGenerator {
    /// Random bytes, eight from each number.
    mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { all in
            var offset = 0
            while offset < count {
                withUnsafeBytes(of: next().littleEndian) { word in
                    let part = word.prefix(count - offset)
                    UnsafeMutableRawBufferPointer(rebasing: all[offset..<(offset + part.count)]).copyBytes(from: part)
                }
                offset += 8
            }
        }
        return bytes
    }
}

extension StoreKey {
    init(_ text: String) {
        self.init(Array(text.utf8))
    }
}

extension StoreInstant {
    static func at(_ milliseconds: Int) -> StoreInstant { StoreInstant(milliseconds: Int64(milliseconds)) }
}

extension EntryDescription {
    init(_ text: String, uselessAfter: StoreInstant = .distantFuture, tags: Set<String> = []) {
        self.init(metadata: ByteChunk(copying: text.utf8), uselessAfter: uselessAfter, tags: tags)
    }

    var text: String { String(decoding: metadata, as: UTF8.self) }
}

extension CacheStore {
    func writer(
        _ key: String,
        variant: String = "",
        _ description: EntryDescription = EntryDescription("meta"),
        expecting length: Int? = nil,
        now: StoreInstant = .at(0)
    ) async throws(StoreError) -> any EntryWriter {
        try await write(
            StoreKey(key),
            variant: StoreKey(variant),
            description: description,
            expectedLength: length,
            now: now
        )
    }

    @discardableResult
    func put(
        _ key: String,
        variant: String = "",
        _ body: [UInt8],
        _ description: EntryDescription = EntryDescription("meta"),
        now: StoreInstant = .at(0)
    ) async throws(StoreError) -> StoredEntry {
        let writer = try await writer(key, variant: variant, description, expecting: body.count, now: now)
        try await writer.append(ByteChunk(body))
        return try await writer.commit(nil, now: now)
    }

    func get(_ key: String, now: StoreInstant = .at(0)) async throws(StoreError) -> [StoredEntry] {
        try await entries(for: StoreKey(key), now: now)
    }

    func wholeBody(of entry: StoredEntry, piece: Int = 50_000) async throws(StoreError) -> [UInt8] {
        try await body(of: entry).whole(piece: piece)
    }

    /// All that a list shows, `limit` at a time; a list without an end is cut off, at far more than any law stores.
    func listed(limit: Int) async throws(StoreError) -> [ListedEntry] {
        var all: [ListedEntry] = []
        var cursor: StoreCursor?
        repeat {
            let page = try await list(after: cursor, limit: limit, now: .at(0))
            all += page.listed
            cursor = page.next
        } while cursor != nil && all.count < 2_000
        return all
    }
}

extension StoredBody {
    func whole(piece: Int = 50_000) async throws(StoreError) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = try await read(from: bytes.count, upTo: piece)
            if chunk.isEmpty { return bytes }
            bytes += chunk.array
        }
    }
}
