// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage

/// A store in a directory of its own, with the entries that the benchmarks put and get.
struct StoreBench: Sendable {
    /// How many different entries there are; fewer than fill the store.
    static let keyCount = 64

    private let store: DiskStore
    private let keys: [StoreKey]
    private let body: ByteChunk
    private let metadata = ByteChunk([UInt8](repeating: 7, count: 256))
    private let now = StoreInstant(milliseconds: 1_700_000_000_000)

    /// Runs `work` on a new store and removes the store afterwards.
    static func withStore(size: BodySize, _ work: (StoreBench) async throws -> Void) async throws {
        let name = "holdfast-regressions-\(UUID().uuidString)"
        let parent = URL(fileURLWithPath: FileManager.default.currentDirectoryPath).deletingLastPathComponent()
        let path = parent.appendingPathComponent(name).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let now = StoreInstant(milliseconds: 1_700_000_000_000)
        let store = try await DiskStore.open(directory: path, capacity: 256 << 20, now: now)
        do {
            try await work(StoreBench(store: store, size: size))
        } catch {
            await store.close()
            throw error
        }
        await store.close()
    }

    private init(store: DiskStore, size: BodySize) {
        self.store = store
        keys = (0..<Self.keyCount).map { number in
            let text = "GET https://origin.example/regressions/\(size.name)/\(number)"
            return StoreKey(Array(text.utf8))
        }
        body = ByteChunk([UInt8](repeating: 42, count: size.bytes))
    }

    func put(_ numbers: Range<Int>) async throws {
        for number in numbers {
            let writer = try await store.write(
                keys[number % keys.count],
                variant: StoreKey([]),
                description: EntryDescription(metadata: metadata),
                expectedLength: body.count,
                now: now
            )
            try await writer.append(body)
            try await writer.commit(nil, now: now)
        }
    }

    func get(_ numbers: Range<Int>) async throws {
        for number in numbers {
            let key = keys[number % keys.count]
            var found = store.peek(key, now: now)
            if found == nil { found = try await store.entries(for: key, now: now) }
            guard let entry = found?.first else {
                throw StoreError(.corrupt, "An entry is missing; enlarge the store.")
            }
            let body = try await store.body(of: entry)
            var count = body.bytesInMemory?.count ?? 0
            while count < entry.bodyLength {
                let chunk = try await body.read(from: count, upTo: entry.bodyLength - count)
                if chunk.isEmpty { throw StoreError(.corrupt, "A body ended early; verify the store.") }
                count += chunk.count
            }
        }
    }
}
