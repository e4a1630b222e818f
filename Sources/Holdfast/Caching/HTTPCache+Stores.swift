// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage

extension HTTPCache {
    /// A cache in memory of 32 MiB, private mode: ``inMemory(capacity:options:)`` with its defaults.
    ///
    /// Each use makes a new, empty one: make it once per client.
    public static var `default`: HTTPCache { .inMemory() }

    /// A cache in memory, gone with the process.
    ///
    /// - Parameters:
    ///   - capacity: bytes of bodies, fields and keys held at most; 32 MiB by default.
    ///   - options: how the rules are applied; private mode by default.
    public static func inMemory(capacity: Int = 32 << 20, options: CacheOptions = CacheOptions()) -> HTTPCache {
        HTTPCache(store: MemoryStore(capacity: capacity), options: options)
    }

    /// A cache on disk, there again after a restart.
    ///
    /// - Parameters:
    ///   - directory: a file URL; the directory is made where it is missing, with access for its owner alone. One process
    ///     at a time may have it open.
    ///   - capacity: bytes on the disk at most; 256 MiB by default, at least 1 MiB.
    ///   - seal: encrypts keys, fields and bodies before they are written, such as `AEADSeal` of HoldfastCrypto; nil, the
    ///     default, writes them as they are.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: ``StoreError``: `.locked` where another process has it open, `.unsafeDirectory`, `.io`, `.noSpace`.
    public static func onDisk(
        at directory: URL,
        capacity: Int = 256 << 20,
        seal: (any StoreSeal)? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws -> HTTPCache {
        let store = try await openDisk(at: directory, capacity: capacity, seal: seal)
        return HTTPCache(store: store, options: options)
    }

    /// A cache on disk whose responses are answered from memory once they are asked for often.
    ///
    /// Everything is kept on the disk; what memory holds is a copy of some of it, and there anew only after some hits.
    ///
    /// - Parameters:
    ///   - directory: as in ``onDisk(at:capacity:seal:options:)``.
    ///   - memory: bytes held in memory at most; 32 MiB by default.
    ///   - capacity: bytes on the disk at most; 256 MiB by default.
    ///   - seal: encrypts what is written to the disk, not what is in memory; nil by default.
    ///   - rule: which responses are copied into memory, and when; at the second hit by default.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: as ``onDisk(at:capacity:seal:options:)``.
    public static func tiered(
        at directory: URL,
        memory: Int = 32 << 20,
        capacity: Int = 256 << 20,
        seal: (any StoreSeal)? = nil,
        rule: PromotionRule = .secondHit,
        options: CacheOptions = CacheOptions()
    ) async throws -> HTTPCache {
        let disk = try await openDisk(at: directory, capacity: capacity, seal: seal)
        return HTTPCache(store: TieredStore(memory: memory, over: disk, rule: rule), options: options)
    }

    private static func openDisk(
        at directory: URL,
        capacity: Int,
        seal: (any StoreSeal)?
    ) async throws -> DiskStore {
        let parent = directory.standardizedFileURL.deletingLastPathComponent()
        do {
            try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        } catch {
            throw StoreError(.io, "The directory \(parent.path) cannot be made; choose one that can.", cause: error)
        }
        return try await DiskStore.open(
            directory: directory.standardizedFileURL.path,
            capacity: capacity,
            seal: seal,
            now: StoreInstant(SystemClock().timestamp)
        )
    }
}
