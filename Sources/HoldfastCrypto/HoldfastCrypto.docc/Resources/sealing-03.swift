// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastCrypto

func makeSeal(_ bytes: [UInt8]) throws -> AEADSeal {
    try AEADSeal(current: SealingKey(id: 1, bytes: bytes))
}

func openCache(at directory: URL, sealedBy seal: AEADSeal) async throws -> HTTPCache {
    try await HTTPCache.onDisk(at: directory, capacity: 64 << 20, seal: seal)
}

func makeSeal(_ bytes: [UInt8], retiring old: [UInt8]) throws -> AEADSeal {
    try AEADSeal(
        current: SealingKey(id: 2, bytes: bytes),
        retired: [SealingKey(id: 1, bytes: old)]
    )
}
