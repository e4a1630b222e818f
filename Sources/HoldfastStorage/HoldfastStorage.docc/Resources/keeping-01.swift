// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage

func keep(_ text: String, as name: String, in store: any CacheStore, now: StoreInstant) async throws {
    let writer = try await store.write(
        StoreKey(Array(name.utf8)),
        variant: StoreKey([]),
        description: EntryDescription(metadata: ByteChunk(), tags: ["texts"]),
        expectedLength: text.utf8.count,
        now: now
    )
    try await writer.append(ByteChunk(copying: text.utf8))
    try await writer.commit(nil, now: now)
}
