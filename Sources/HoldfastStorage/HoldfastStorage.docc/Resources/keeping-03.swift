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

func text(named name: String, in store: any CacheStore, now: StoreInstant) async throws -> String? {
    let key = StoreKey(Array(name.utf8))
    var entries = store.peek(key, now: now)
    if entries == nil { entries = try await store.entries(for: key, now: now) }
    guard let entry = entries?.first else { return nil }
    let body = try await store.body(of: entry)
    var bytes: [UInt8] = []
    while bytes.count < entry.bodyLength {
        try await body.read(from: bytes.count, upTo: 64 << 10).append(to: &bytes)
    }
    return String(decoding: bytes, as: UTF8.self)
}

func openStore(in directory: String, now: StoreInstant) async throws -> any CacheStore {
    let disk = try await DiskStore.open(directory: directory, capacity: 64 << 20, now: now)
    return TieredStore(memory: 8 << 20, over: disk)
}
