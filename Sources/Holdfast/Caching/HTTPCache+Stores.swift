// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
internal import HoldfastStorage

extension HTTPCache {
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
    ///   - capacity: bytes on the disk at most; 256 MiB by default, at least 64 KiB.
    ///   - options: how the rules are applied; private mode by default.
    /// - Throws: ``StoreError``: `.locked` where another process has it open, `.unsafeDirectory`, `.io`, `.noSpace`.
    public static func onDisk(
        at directory: URL,
        capacity: Int = 256 << 20,
        options: CacheOptions = CacheOptions()
    ) async throws -> HTTPCache {
        let parent = directory.standardizedFileURL.deletingLastPathComponent()
        do {
            try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        } catch {
            throw StoreError(.io, "The directory \(parent.path) cannot be made; choose one that can.", cause: error)
        }
        let store = try await DiskStore.open(
            directory: directory.standardizedFileURL.path,
            capacity: capacity,
            now: StoreInstant(SystemClock().timestamp)
        )
        return HTTPCache(store: store, options: options)
    }
}
