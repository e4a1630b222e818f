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
    /// - Throws: `StoreError`: `.locked` where another process has it open, `.unsafeDirectory`, `.io`, `.noSpace`.
    public static func onDisk(
        at directory: URL,
        capacity: Int = 256 << 20,
        seal: (any StoreSeal)? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws -> HTTPCache {
        let store = try await openDisk(at: directory, capacity: capacity, seal: seal)
        return HTTPCache(store: store, options: options)
    }

    /// A cache on disk that is looked into and never changed, beside the process that has it open or without one.
    ///
    /// For tools: ``entries(_:pageSize:now:)``, ``export(_:now:)``, ``verify(progress:)`` and the store's statistics work over it. It shows
    /// the directory as it was at one instant (see `DiskStoreReader`). A pipeline over it answers from what is stored and
    /// stores nothing: each attempt is an event of a failed store, and what a request makes invalid stays.
    ///
    /// - Parameters:
    ///   - directory: a file URL of a directory that holds a cache; nothing is made.
    ///   - seal: opens what was encrypted; nil, the default, where nothing was or the key is not at hand.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: `StoreError`: `.badConfiguration` where the directory holds no cache, `.unsafeDirectory`, `.io`, `.resting` where
    ///   it changes faster than it can be read.
    public static func onDiskReadOnly(
        at directory: URL,
        seal: (any StoreSeal)? = nil,
        options: CacheOptions = CacheOptions()
    ) async throws(StoreError) -> HTTPCache {
        let path = directory.standardizedFileURL.path
        return HTTPCache(store: try await DiskStoreReader.open(directory: path, seal: seal), options: options)
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
