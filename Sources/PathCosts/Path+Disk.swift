// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage
internal import Synchronization

extension Path {
    /// The disk store, by itself, over real files that the system holds in memory.
    ///
    /// - Parameters:
    ///   - folder: where it lies; there, and empty.
    ///   - line: what its tasks run on.
    static func disks(in folder: String, on line: Line) -> [Path] {
        let now = StoreInstant(milliseconds: 0)
        let opened = Opened()
        line.run {
            let store = try? await DiskStore.open(directory: folder + "/store", capacity: 64 << 20, now: now)
            opened.store.withLock { $0 = store }
        }
        guard let store = opened.store.withLock({ $0 }) else { return [] }
        let body = ByteChunk([UInt8](repeating: 7, count: 16 << 10))
        let keys = (0..<64).map { StoreKey(Array("key \($0) of some length, as the keys of caches have".utf8)) }
        line.run {
            for key in keys { try? await put(key, body, in: store, now) }
        }
        return [
            Path("disk-look-up") { find(keys[$0 % keys.count], in: store, now)?.count == 1 },
            Path("disk-get", turns: 200) { (index: Int) async throws -> Bool in
                guard let entry = find(keys[index % keys.count], in: store, now)?.first else { return false }
                return try await store.body(of: entry).read(from: 0, upTo: body.count).count == body.count
            },
            Path("disk-put", turns: 100) { (index: Int) async throws -> Bool in
                try await put(keys[index % keys.count], body, in: store, now)
                return true
            },
        ]
    }

    /// The entry of a key, which is there: a store that would have to wait for the device, as it may while that is busy, is asked again.
    private static func find(_ key: StoreKey, in store: DiskStore, _ now: StoreInstant) -> [StoredEntry]? {
        for _ in 0..<1_000 {
            if let found = store.peek(key, now: now) { return found }
            usleep(100)
        }
        return nil
    }
}

/// What a task opened for the thread that waits for it.
private final class Opened: Sendable {
    let store = Mutex<DiskStore?>(nil)
}
