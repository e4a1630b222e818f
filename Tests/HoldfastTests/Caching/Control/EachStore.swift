// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting

@testable import Holdfast

/// Both stores of the library, so that one test runs over each.
enum EachStore: String, CaseIterable, Sendable {
    case memory, disk

    /// Runs `body` over a fresh store, closes it and removes what it left.
    func with(capacity: Int = 4 << 20, _ body: (any CacheStore) async throws -> Void) async throws {
        switch self {
        case .memory:
            try await body(MemoryStore(capacity: capacity))
        case .disk:
            try await DiskCacheTests.withDirectory { directory in
                let parent = directory.deletingLastPathComponent()
                try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
                let store = try await DiskStore.open(
                    directory: directory.path,
                    capacity: capacity,
                    now: StoreInstant(Timestamp(secondsSinceEpoch: 1_700_000_000))
                )
                try await body(store)
                await store.close()
            }
        }
    }
}

extension CacheBench {
    /// The clock's time of day: by it ages are judged.
    var time: Timestamp { clock.timestamp }
}
