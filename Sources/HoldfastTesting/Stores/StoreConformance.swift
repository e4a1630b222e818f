// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastStorage
internal import Synchronization

/// The promises of `CacheStore`, `EntryWriter` and `StoredBody` as laws that any store can be tested against.
///
/// Needs no test framework: a law returns findings, and none means that it holds. With Swift Testing:
///
/// ```swift
/// @Test(arguments: StoreConformance.laws)
/// func law(_ law: StoreConformance.Law) async {
///     let findings = await law.findings(of: myStores)
///     #expect(findings.isEmpty, "\(findings)")
/// }
/// ```
///
/// A store may choose what it evicts and how it counts bytes against its capacity. The laws only require that the capacity holds,
/// that pins hold, and that the latest write is there. The only thing they wait for is a follower's bytes, so a store that never
/// wakes its followers makes them hang: run them under a time limit.
public enum StoreConformance {
    /// One broken promise.
    public struct Finding: Sendable, Hashable, CustomStringConvertible {
        /// The law's name.
        public let law: String
        /// What was observed, and what was expected.
        public let message: String

        /// A finding against a law.
        public init(law: String, message: String) {
            self.law = law
            self.message = message
        }

        public var description: String { "\(law): \(message)" }
    }

    /// One law, which can be run on its own.
    public struct Law: Sendable, CustomStringConvertible {
        /// What the law says, in a sentence; unique.
        public let name: String
        /// Whether it is about surviving a restart; it holds trivially for stores that cannot be reopened.
        package let isOfRestarts: Bool
        let check: @Sendable (LawRun) async throws -> Void

        init(_ name: String, isOfRestarts: Bool = false, check: @escaping @Sendable (LawRun) async throws -> Void) {
            self.name = name
            self.isOfRestarts = isOfRestarts
            self.check = check
        }

        public var description: String { name }

        /// What breaks the law; empty if it holds.
        ///
        /// - Parameters:
        ///   - factory: makes the stores, each new and empty; some laws use several.
        ///   - seed: the seed of the law's random choices; findings contain it.
        public func findings(of factory: StoreFactory, seed: UInt64 = 1) async -> [Finding] {
            let run = LawRun(law: name, factory: factory, seed: seed)
            do {
                try await check(run)
            } catch {
                run.report("threw \(error)")
            }
            return run.findings
        }
    }

    /// Every law.
    public static let laws: [Law] =
        entryLaws + listLaws + purgeLaws + spaceLaws + writerLaws + followerLaws + restartLaws + randomLaws

    /// The findings of all laws.
    ///
    /// - Parameters:
    ///   - factory: makes the stores.
    ///   - seeds: every law runs once with each.
    public static func findings(of factory: StoreFactory, seeds: [UInt64] = [1]) async -> [Finding] {
        var findings: [Finding] = []
        for law in laws {
            for seed in seeds { findings += await law.findings(of: factory, seed: seed) }
        }
        return findings
    }
}

/// How ``StoreConformance`` makes stores of one kind.
public struct StoreFactory: Sendable, CustomStringConvertible {
    /// The name of the stores.
    public let description: String
    /// Makes an empty store with the given capacity in bytes.
    public let make: @Sendable (_ capacity: Int) async throws -> StoreSubject

    /// A factory.
    ///
    /// - Parameters:
    ///   - description: the name of the stores.
    ///   - make: makes an empty store with the given capacity in bytes: from 4 MiB to 64 MiB. Tests run laws in parallel, so no two
    ///     stores may share a location.
    public init(_ description: String, make: @escaping @Sendable (_ capacity: Int) async throws -> StoreSubject) {
        self.description = description
        self.make = make
    }
}

/// A store under test, and what can be done with it from outside.
public struct StoreSubject: Sendable {
    /// The store.
    public let store: any CacheStore
    /// Opens the store again after it was closed, with the contents that it kept; nil for a store that keeps nothing.
    public let reopen: (@Sendable () async throws -> any CacheStore)?
    /// The bytes that the store holds, measured from outside, for example by its files; nil: use its statistics.
    public let heldBytes: (@Sendable () -> Int)?
    /// Removes what the store left; called last.
    public let cleanUp: @Sendable () -> Void

    /// A subject.
    ///
    /// - Parameters:
    ///   - store: new and empty.
    ///   - reopen: see ``reopen``.
    ///   - heldBytes: see ``heldBytes``.
    ///   - cleanUp: see ``cleanUp``.
    public init(
        _ store: any CacheStore,
        reopen: (@Sendable () async throws -> any CacheStore)? = nil,
        heldBytes: (@Sendable () -> Int)? = nil,
        cleanUp: @escaping @Sendable () -> Void = {}
    ) {
        self.store = store
        self.reopen = reopen
        self.heldBytes = heldBytes
        self.cleanUp = cleanUp
    }
}

/// One run of one law: makes stores and collects findings.
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

    /// Runs `first`, closes the store, opens it again and runs `second`; does nothing for a store that keeps nothing.
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

    /// Adds a finding, up to twenty.
    func report(_ message: String) {
        let finding = StoreConformance.Finding(law: law, message: "\(factory), seed \(seed): \(message)")
        found.withLock { if $0.count < 20 { $0.append(finding) } }
    }

    /// Adds a finding if `holds` is false.
    func check(_ holds: Bool, or message: @autoclosure () -> String) { if !holds { report(message()) } }

    /// Adds a finding if the bytes differ.
    func equal(_ bytes: [UInt8], to expected: [UInt8], for what: @autoclosure () -> String) {
        guard ByteChunk(bytes) != ByteChunk(expected) else { return }
        guard let index = zip(bytes, expected).enumerated().first(where: { $1.0 != $1.1 })?.offset else {
            return report("\(what()): \(bytes.count) bytes, not \(expected.count)")
        }
        let place = "of \(bytes.count) bytes the first that differs is at \(index)"
        report("\(what()): \(place): \(bytes[index]), not \(expected[index])")
    }

    /// Adds a finding if the values differ.
    func equal<Value: Equatable>(_ value: Value, to expected: Value, for what: @autoclosure () -> String) {
        guard value != expected else { return }
        let (seen, wanted) = (text(value), text(expected))
        // What differs may come late in a long text.
        let start = max(0, zip(seen, wanted).prefix { $0 == $1 }.count - 200)
        report("\(what()): \(seen.dropFirst(start).prefix(400)), not \(wanted.dropFirst(start).prefix(400))")
    }

    /// Adds a finding unless `body` throws a ``StoreError`` with this code.
    func throwing(_ code: StoreError.Code, what: String, by body: () async throws -> Void) async {
        let seen = await self.code(body)
        if seen != code.description { report("\(what) gave \(seen ?? "no error"), not \(code)") }
    }

    /// The code that `body` failed with, another error's description, or nil.
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

    /// A value as a finding shows it; entries have no description of their own.
    private func text(_ value: Any) -> String {
        switch value {
        case let bytes as [UInt8] where bytes.count > 16: return "\(bytes.count) bytes"
        case let description as EntryDescription:
            let instant = description.uselessAfter
            let end = instant == .distantFuture ? "never useless" : "useless after \(instant.milliseconds)"
            return "\(readable(description.metadata.array)), \(end), tags \(description.tags.sorted())"
        case let entry as StoredEntry:
            let marks = (entry.isPinned ? ", pinned" : "") + (entry.needsValidation ? ", needs validation" : "")
            return "\(readable(entry.key.bytes))/\(readable(entry.variant.bytes)) version \(entry.version.number), "
                + "\(entry.bodyLength) bytes, stored at \(entry.storedAt.milliseconds)\(marks), "
                + text(entry.description)
        case let entries as [StoredEntry]: return "[" + entries.map { text($0) }.joined(separator: "; ") + "]"
        case let entries as Set<StoredEntry>: return text(entries.sorted { $0.version < $1.version })
        default: return "\(value)"
        }
    }

    private func readable(_ bytes: [UInt8]) -> String { String(validating: bytes, as: UTF8.self) ?? "\(bytes)" }
}
