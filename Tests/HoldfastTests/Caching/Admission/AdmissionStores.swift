// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting

/// The stores that sequences run over. Those on disk are opened once for many sequences, which then have hosts of their own.
struct AdmissionStores {
    private let disk: DiskStore
    private let tiered: TieredStore

    init() async throws {
        disk = try await AdmissionStores.openDisk()
        tiered = TieredStore(memory: 4 << 20, over: try await AdmissionStores.openDisk(), rule: .firstHit)
    }

    func store(for setting: AdmissionSetting) -> any CacheStore {
        switch setting.store {
        case .memory: MemoryStore(capacity: 1 << 20)
        case .disk: disk
        case .tiered: tiered
        }
    }

    func close() async {
        await disk.close()
        await tiered.close()
    }

    private static func openDisk() async throws -> DiskStore {
        try await DiskStore.open(
            directory: "/cache",
            capacity: 64 << 20,
            fileSystem: SimulatedFileSystem(remembersUnsynced: false),
            now: StoreInstant(milliseconds: 1_700_000_000_000)
        )
    }
}
