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
