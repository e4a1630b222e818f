// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import HoldfastTesting
import Testing

extension SeededGenerator {
    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

extension StoreKey {
    init(_ text: String) {
        self.init(Array(text.utf8))
    }
}

extension StoreInstant {
    static func at(_ milliseconds: Int64) -> StoreInstant { StoreInstant(milliseconds: milliseconds) }
}

extension EntryDescription {
    init(_ text: String, uselessAfter: StoreInstant = .distantFuture, tags: Set<String> = []) {
        self.init(metadata: ByteChunk(copying: text.utf8), uselessAfter: uselessAfter, tags: tags)
    }

    var text: String { String(decoding: metadata, as: UTF8.self) }
}

extension CacheStore {
    /// Writes a whole entry.
    @discardableResult
    func put(
        _ key: String,
        variant: String = "",
        _ body: [UInt8],
        _ description: EntryDescription = EntryDescription("meta"),
        now: StoreInstant = .at(0)
    ) async throws -> StoredEntry {
        let writer = try await write(
            StoreKey(key),
            variant: StoreKey(variant),
            description: description,
            expectedLength: nil,
            now: now
        )
        try await writer.append(ByteChunk(body))
        return try await writer.commit(nil, now: now)
    }

    /// The variants of a key.
    func get(_ key: String, now: StoreInstant = .at(0)) async throws -> [StoredEntry] {
        try await entries(for: StoreKey(key), now: now)
    }

    /// The whole body of an entry, read in pieces.
    func wholeBody(of entry: StoredEntry, piece: Int = 50_000) async throws -> [UInt8] {
        try await body(of: entry).whole(piece: piece)
    }
}

extension StoredBody {
    /// All bytes, read in pieces until the end.
    func whole(piece: Int = 50_000) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = try await read(from: bytes.count, upTo: piece)
            if chunk.isEmpty { return bytes }
            bytes += chunk.array
        }
    }
}

/// The code of the error that `body` throws.
func errorCode(_ body: @Sendable () async throws -> Void) async -> StoreError.Code? {
    do {
        try await body()
        return nil
    } catch {
        if !(error is StoreError) { Issue.record(error, "an error of another kind") }
        return (error as? StoreError)?.code
    }
}
